#include "phlox/target/thread_stop.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cerrno>

namespace phlox::target {

ThreadStop::ThreadStop(pid_t pid, pid_t tid) : tid_(tid) {
  if (::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) {
    state_ = errno == ESRCH ? State::gone : State::refused;
    return;
  }
  if (::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0) {
    // Seized and gone at once: its end is left to whoever waits for it.
    ::ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
    return;
  }
  // WNOWAIT: the end of a program that we started must stay to be reaped by its parent, another thread of
  // ours. A stop that is not taken over goes away with the detach.
  siginfo_t info{};
  int waited = -1;
  do {
    waited = ::waitid(P_PID, static_cast<id_t>(tid), &info, WSTOPPED | WEXITED | WNOWAIT | __WALL);
  } while (waited != 0 && errno == EINTR);
  if (waited != 0 || info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED) {
    // A thread's end only its tracer may take; left alone it would keep its process from ending.
    if (waited == 0 && tid != pid) ::waitpid(tid, nullptr, __WALL);
    return;
  }
  // si_status holds the stop's whole code (kernel/exit.c, wait_task_stopped): a signal, and PTRACE_EVENT_STOP
  // above it when it was us (or a stop by job control, which detaching leaves in force).
  if (info.si_status >> 8 != PTRACE_EVENT_STOP) {
    ::ptrace(PTRACE_DETACH, tid, nullptr, static_cast<uintptr_t>(info.si_status & 0x7f));
    state_ = State::signalled;
    return;
  }
  state_ = State::stopped;
}

bool ThreadStop::read_registers(UserRegisters& into) const {
  if (state_ != State::stopped) return false;
  user_regs_struct regs{};
  iovec to{&regs, sizeof regs};
  if (::ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, &to) != 0) return false;
#if defined(__x86_64__)
  into = {RemoteAddress(regs.rip), RemoteAddress(regs.rsp), regs.rbp, 0, regs.rbx};
#elif defined(__aarch64__)
  into = {RemoteAddress(regs.pc), RemoteAddress(regs.sp), regs.regs[29], regs.regs[30], 0};
#endif
  return true;
}

void ThreadStop::let_go() {
  if (state_ == State::stopped) ::ptrace(PTRACE_DETACH, tid_, nullptr, nullptr);
  state_ = State::gone;
}

}  // namespace phlox::target
