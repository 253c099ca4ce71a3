// One thread of a target, standing still for some microseconds: seized, interrupted, let go. It is traced
// only as long as the object lives, so that between two looks signals reach it as ever, a debugger may
// attach, and nothing can be left stopped: the kernel lets go of it when we die, and should we be stopped
// ourselves, pause_limit.h does. One CPU thread makes and
// destroys it (ptrace is bound to it). Never used on a thread that is blocked in a system call: an interrupt
// makes epoll_wait return EINTR. There is no other way to stop a thread in this program.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "phlox/base/address.h"
#include "phlox/base/clock.h"
#include "phlox/target/pause_limit.h"
#include "phlox/target/thread_probe.h"

namespace phlox::target {

// What an unwinder follows (user_regs_struct, kernel 6.1).
struct UserRegisters {
  RemoteAddress pc, sp;
  uint64_t fp = 0;  // rbp, x29
  uint64_t lr = 0;  // x30; x86-64 has none
  uint64_t bx = 0;  // rbx; aarch64 has none
};

// What all stops of one who counts them came to.
struct StopCounts {
  uint64_t stops = 0;
  uint64_t stop_refused = 0;
  // How long threads stood for us, beyond the CPU time that the caller used meanwhile. One that waited for a
  // CPU until it could stop would have waited without us.
  Nanoseconds stood = 0;
};

class ThreadStop {
 public:
  enum class State : uint8_t {
    stopped,
    gone,       // it ended, or was never there
    refused,    // no right, or somebody else traces it
    signalled,  // it was just taking a signal of its own, which it has got; another attempt will do
  };

  // Waits until it stands still. `pid`: the process that the thread belongs to. `thread` and `counts` are
  // kept and used until it is let go.
  ThreadStop(pid_t pid, ThreadProbe& thread, StopCounts& counts);
  ~ThreadStop() { let_go(); }
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;

  State state() const { return state_; }
  // stopped only; false: the kernel did not tell.
  bool read_registers(UserRegisters& into) const;
  // It runs on. Does nothing the second time.
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

}  // namespace phlox::target
