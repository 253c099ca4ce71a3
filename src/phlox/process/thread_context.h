// Where the threads of a process publish the span of a trace that each works for: OpenTelemetry's thread
// context (OTEP 4947, oteps/profiles/4947-thread-ctx.md of open-telemetry/opentelemetry-specification). A
// thread-local variable `otel_thread_ctx_v1`, exported by a library or the program, points to the thread's
// record.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include "phlox/base/address.h"
#include "phlox/base/machine.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/process/maps.h"

namespace phlox::process {

// Of the variable: from a thread's thread pointer, or in that thread's block of thread-local variables of one
// module, which its vector of blocks leads to.
struct ThreadVariable {
  uint32_t module = 0;  // the dynamic linker's number of it; 0: no such block, `offset` is from the pointer
  int64_t offset = 0;
  // From the thread pointer: the word with the vector's address. From there: the word with the number of its
  // entries, and the bytes of each, which begin with a block's address.
  int32_t vector = 0, count = 0;
  uint32_t entry = 0;
  // How far pthread_self() lies below the thread pointer (thread_block.h).
  uint32_t block = 0;

  friend bool operator==(const ThreadVariable&, const ThreadVariable&) = default;
};

// As the dynamic linker has relocated one module. None: it has no such variable, or the linker has not
// resolved it yet. `is_program`: the executable, not a library.
enum class CLibrary : uint8_t { glibc, musl };
std::optional<ThreadVariable> thread_variable_in(const LoadedModule& module, memory::RemoteMemory& memory,
                                                 bool is_program, CLibrary library);
// Searches the program and its libraries, which may take some milliseconds.
std::optional<ThreadVariable> find_thread_context(pid_t pid, memory::RemoteMemory& memory);

// Its address for the thread with this thread pointer. Zero: that thread has none. `load(address, word)`:
// reads a word of 8 bytes.
template <class Load>
RemoteAddress address_of(const ThreadVariable& variable, RemoteAddress thread, Load&& load) {
  const auto beyond = [](uint64_t address, int64_t by) {
    return RemoteAddress(address + static_cast<uint64_t>(by));
  };
  if (variable.module == 0) return beyond(thread.value, variable.offset);
  uint64_t vector = 0, count = 0, block = 0;
  if (!load(beyond(thread.value, variable.vector), vector) || !load(beyond(vector, variable.count), count) ||
      variable.module > count ||
      !load(RemoteAddress(vector + uint64_t{variable.module} * variable.entry), block) ||
      !is_plausible(RemoteAddress(block)))
    return {};
  return beyond(block, variable.offset);
}

// The fixed beginning of a record.
struct ThreadContext {
  uint8_t trace[16] = {};
  uint8_t span[8] = {};
  uint8_t valid = 0, flags = 0;
  uint16_t more = 0;  // bytes of attributes, which Phlox does not read

  // Whether it names a span.
  bool is_set() const;
};
static_assert(sizeof(ThreadContext) == 28);

}  // namespace phlox::process
