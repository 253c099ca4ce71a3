// Stops one thread of a target for some microseconds: seized, interrupted, released. It is traced only as
// long as the object lives, so signals reach it normally between two samples, a debugger may attach, and
// nothing can stay stopped: the kernel releases it when we die, and pause_limit.h does if we are stopped
// ourselves. One CPU thread makes and destroys it (ptrace is bound to it). Never used on a thread that is
// blocked in a system call: an interrupt makes epoll_wait return EINTR. Nothing else in this program stops a
// thread.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "phlox/base/address.h"
#include "phlox/base/clock.h"
#include "phlox/process/pause_limit.h"
#include "phlox/process/thread_probe.h"

namespace phlox::process {

// The registers that an unwinder follows (user_regs_struct, kernel 6.1).
struct UserRegisters {
  RemoteAddress pc, sp;
  uint64_t fp = 0;  // rbp, x29
  uint64_t lr = 0;  // x30; x86-64 has none
  uint64_t bx = 0;  // rbx; aarch64 has none
};

// The sum of all stops of one counter.
struct StopCounts {
  uint64_t stops = 0;
  uint64_t stop_refused = 0;
  // How long we kept threads stopped, without the CPU time that the caller used meanwhile. A thread that
  // waited for a CPU until it could stop would have waited anyway.
  Nanoseconds stood = 0;
};

class ThreadStop {
 public:
  enum class State : uint8_t {
    stopped,
    gone,       // it ended, or never existed
    refused,    // no right, or another process traces it
    signalled,  // it was just taking a signal of its own, which it has received; try again
  };

  // Waits until it has stopped. `pid`: the process of the thread. `thread` and `counts` are kept and used
  // until it is released.
  ThreadStop(pid_t pid, ThreadProbe& thread, StopCounts& counts);
  ~ThreadStop() { let_go(); }
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;

  State state() const { return state_; }
  // Only if stopped; false: the kernel did not give them.
  bool read_registers(UserRegisters& into) const;
  // Releases it. Does nothing the second time.
  void let_go();

 private:
  State stop(pid_t pid);
  void count_time();

  PauseLimit& limit_;
  ThreadProbe& thread_;
  pid_t tid_;
  StopCounts& counts_;
  Nanoseconds begun_, cpu_begun_;
  uint64_t queued_before_;
  State state_;
};

}  // namespace phlox::process
