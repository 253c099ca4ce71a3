// What a program publishes about itself for readers outside: OpenTelemetry's process context. The header and
// how to read it: OTEP 4719 (oteps/profiles/4719-process-ctx.md of
// open-telemetry/opentelemetry-specification), version 2. The bytes are a message ProcessContext
// (opentelemetry/proto/processcontext/v1development/process_context.proto, opentelemetry-proto 1.11).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/process_memory.h"
#include "phlox/process/maps.h"

namespace phlox::process {

struct PublishedContext {
  uint64_t published_at = 0;  // ns, of a clock of the publisher's choice; never 0
  std::string message;        // anything: the program may be hostile
};

// Where a header may be: mappings with the name that publishers give them.
std::vector<RemoteAddress> context_mappings(const std::vector<Mapping>& maps);
// Nothing: there is no header, it is of another version, or the context is being changed.
std::optional<PublishedContext> read_context(memory::RemoteMemory& memory, RemoteAddress header);

// Of one process, again and again: programs publish it when their SDK starts, and may change it later.
class ContextReader {
 public:
  explicit ContextReader(pid_t pid) : pid_(pid), memory_(pid) {}
  // The message, if there is one that was published after the last.
  std::optional<std::string> read_new();

 private:
  std::optional<PublishedContext> find();

  pid_t pid_;
  memory::ProcessMemory memory_;
  RemoteAddress header_;  // zero: not found yet
  uint64_t published_at_ = 0;
};

}  // namespace phlox::process
