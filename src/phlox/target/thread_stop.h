// One thread of a target, standing still for some microseconds: seized, interrupted, let go. It is traced
// only as long as the object lives, so that between two looks signals reach it as ever, a debugger may
// attach, and nothing can be left stopped: the kernel lets go of it when we die. One CPU thread makes and
// destroys it (ptrace is bound to it). Never used on a thread that is blocked in a system call: an interrupt
// makes epoll_wait return EINTR.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "phlox/base/address.h"

namespace phlox::target {

// What an unwinder follows (user_regs_struct, kernel 6.1).
struct UserRegisters {
  RemoteAddress pc, sp;
  uint64_t fp = 0;  // rbp, x29
  uint64_t lr = 0;  // x30; x86-64 has none
  uint64_t bx = 0;  // rbx; aarch64 has none
};

class ThreadStop {
 public:
  enum class State : uint8_t {
    stopped,
    gone,       // it ended, or was never there
    refused,    // no right, or somebody else traces it: it will be so next time too
    signalled,  // it was just taking a signal of its own, which it has got; another attempt will do
  };

  // Waits until it stands still. `pid`: the process that the thread belongs to.
  ThreadStop(pid_t pid, pid_t tid);
  ~ThreadStop() { let_go(); }
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;

  State state() const { return state_; }
  // stopped only; false: the kernel did not tell.
  bool read_registers(UserRegisters& into) const;
  // It runs on. Does nothing the second time.
  void let_go();

 private:
  pid_t tid_;
  State state_ = State::gone;
};

}  // namespace phlox::target
