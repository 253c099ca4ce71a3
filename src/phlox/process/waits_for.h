// The wait target of a thread that is blocked in a system call, as far as the call's arguments show it: a
// descriptor, a child, or only time. kernel/wait_target.bpf.h does the same inside the kernel. Reads a few
// words of the target's memory if the descriptor is there.
#pragma once

#include <cstdint>

namespace phlox::memory {
class RemoteMemory;
}

namespace phlox::process {

struct BlockedIn;

struct WaitsFor {
  enum class Kind : uint8_t { unknown, descriptor, child, time };
  Kind kind = Kind::unknown;
  // A descriptor, or the child's PID in the thread's namespace.
  int32_t number = -1;
  int32_t others = 0;  // further descriptors that it waits for

  friend bool operator==(const WaitsFor&, const WaitsFor&) = default;
};

// The descriptors of poll(), select() and their relatives are in memory: true if the thread must not have run
// until they were read.
bool stands_in_memory(const BlockedIn& call);
WaitsFor waits_for(const BlockedIn& call, memory::RemoteMemory& memory);

}  // namespace phlox::process
