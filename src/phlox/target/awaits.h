// What a thread that is blocked in a system call waits for, as far as the call's arguments say: a descriptor,
// a child, or nothing but time. kernel/awaited.bpf.h says the same inside the kernel. Reads a word or some of
// the target's memory where the descriptor stands there.
#pragma once

#include <cstdint>

#include "phlox/memory/remote_memory.h"
#include "phlox/target/thread_probe.h"

namespace phlox::target {

struct Awaits {
  enum class Kind : uint8_t { unknown, descriptor, child, time };
  Kind kind = Kind::unknown;
  // A descriptor; of a child its number, as the thread counts.
  int32_t number = -1;
  int32_t others = 0;  // descriptors that it waits for beside

  friend bool operator==(const Awaits&, const Awaits&) = default;
};

// What poll(), select() and their likes wait for stands in memory: true if the thread has not run until it
// was read.
bool stands_in_memory(const BlockedIn& call);
Awaits awaits_of(const BlockedIn& call, memory::RemoteMemory& memory);

}  // namespace phlox::target
