// Where the threads of a process publish the span of a trace that each works for: OpenTelemetry's thread
// context (OTEP 4947, oteps/profiles/4947-thread-ctx.md of open-telemetry/opentelemetry-specification). A
// thread-local variable `otel_thread_ctx_v1`, exported by a library or the program, points to the thread's
// record.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "phlox/base/address.h"
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
  uint32_t self = 0;  // how far pthread_self() lies below the thread pointer (thread_block.h)

  friend bool operator==(const ThreadVariable&, const ThreadVariable&) = default;
};

// Searches the program and its libraries. Reads files of the process, which may take long, or for ever.
class ThreadContextSearch {
 public:
  explicit ThreadContextSearch(pid_t pid) : pid_(pid) {}
  // Again for libraries that were loaded since, and if the linker had not resolved it.
  std::optional<ThreadVariable> find();

 private:
  static constexpr uint64_t kMostRead = uint64_t{256} << 20;
  pid_t pid_;
  Budget budget_ = std::make_shared<elf::ReadBudget>(kMostRead);
  std::set<std::pair<uint64_t, uint64_t>> without_;  // device and inode of files that have no such variable
};

// The fixed beginning of a record.
struct ThreadContext {
  std::array<uint8_t, 16> trace{};
  std::array<uint8_t, 8> span{};
  uint8_t valid = 0, flags = 0;
  uint16_t more = 0;  // bytes of attributes, which Phlox does not read

  // Whether it names a span.
  bool is_set() const;
};
static_assert(sizeof(ThreadContext) == 28);

// The address of the variable for the thread with this thread pointer. Zero: that thread has none.
// `read(address, bytes)`: false if they cannot be read.
template <class Read>
RemoteAddress address_of(const ThreadVariable& variable, RemoteAddress thread, Read&& read) {
  const auto beyond = [](uint64_t address, int64_t by) {
    return RemoteAddress(address + static_cast<uint64_t>(by));
  };
  const auto word = [&](RemoteAddress at, uint64_t& into) {
    return is_plausible(at) && read(at, std::as_writable_bytes(std::span(&into, 1)));
  };
  if (variable.module == 0) return beyond(thread.value, variable.offset);
  uint64_t vector = 0, count = 0, block = 0;
  if (!word(beyond(thread.value, variable.vector), vector) || !word(beyond(vector, variable.count), count) ||
      variable.module > count ||
      !word(RemoteAddress(vector + uint64_t{variable.module} * variable.entry), block) ||
      !is_plausible(RemoteAddress(block)))
    return {};
  return beyond(block, variable.offset);
}

// What a thread publishes, while it cannot run. None: it works for no span. `self`: its pthread_self().
template <class Read>
std::optional<ThreadContext> read_thread_context(const ThreadVariable& variable, uint64_t self, Read&& read) {
  const RemoteAddress at = address_of(variable, RemoteAddress(self + variable.self), read);
  uint64_t record = 0;
  ThreadContext context;
  if (!is_plausible(at) || !read(at, std::as_writable_bytes(std::span(&record, 1))) ||
      !is_plausible(RemoteAddress(record)) ||
      !read(RemoteAddress(record), std::as_writable_bytes(std::span(&context, 1))) || !context.is_set())
    return {};
  return context;
}

}  // namespace phlox::process
