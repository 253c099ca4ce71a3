#include "phlox/process/thread_stop.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "phlox/process/process_state.h"

namespace phlox::process {
namespace {

// It has released its descriptors and memory, and waits to be reaped.
bool has_ended(ThreadProbe& thread) {
  const auto stat = thread.stat();
  return !stat || stat->has_ended();
}

bool is_traced_by_us(pid_t pid) {
  const auto state = read_process_state(pid);
  return state && state->status.tracer == ::gettid();
}

// WNOWAIT: if a program that we started ends, its parent, another thread of ours, must still be able to reap
// it. The detach discards a stop that was not consumed; and if we are killed before that, the signal that
// caused it is not lost (kernel/exit.c: wait_task_stopped would take it away).
//
// Not in one blocking call: when another thread calls execve(), the first thread is released without
// notifying its tracer (fs/exec.c: de_thread), and only the next call reports that there is nothing to wait
// for. SIGCHLD, which a stop sends to its tracer, ends a pause at once; if another thread of ours received
// it, the pause is short.
bool wait_for_stop(pid_t tid, siginfo_t& info) {
  constexpr Nanoseconds kFirstPause = 100'000, kLongestPause = 5'000'000;
  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &child, &before);
  bool found = false;
  for (Nanoseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    info = {};
    if (::waitid(P_PID, static_cast<id_t>(tid), &info, WSTOPPED | WEXITED | WNOWAIT | WNOHANG | __WALL) != 0)
      break;
    found = info.si_pid != 0;
    if (found) break;
    const timespec longest{0, static_cast<long>(pause)};
    ::sigtimedwait(&child, nullptr, &longest);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return found;
}

// Time spent waiting for a CPU so far.
uint64_t queued(ThreadProbe& thread) {
  const auto stat = thread.schedstat();
  return stat ? stat->wait_ns : 0;
}

}  // namespace

ThreadStop::ThreadStop(pid_t pid, ThreadProbe& thread, StopCounts& counts)
    : limit_(PauseLimit::here()),
      thread_(thread),
      tid_(thread.tid()),
      counts_(counts),
      begun_(clock_now()),
      cpu_begun_(clock_now(CLOCK_THREAD_CPUTIME_ID)),
      queued_before_(queued(thread)),
      state_(stop(pid)) {
  if (state_ == State::stopped) ++counts_.stops;
  if (state_ != State::stopped) limit_.end();
  if (state_ == State::refused) ++counts_.stop_refused;
}

ThreadStop::State ThreadStop::stop(pid_t pid) {
  limit_.begin();
  if (::ptrace(PTRACE_SEIZE, tid_, nullptr, nullptr) != 0) {
    // A thread that has just ended gives EPERM too (kernel/ptrace.c: ptrace_attach, exit_state).
    return errno == ESRCH || has_ended(thread_) ? State::gone : State::refused;
  }
  // Seized while it ends: the end of a process is left to its parent; the end of a thread is ours to reap.
  if (::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0 && tid_ == pid) return State::gone;
  siginfo_t info{};
  bool waited = wait_for_stop(tid_, info);
  if (!waited && tid_ != pid && is_traced_by_us(pid)) {
    // It was executing another program, and now has its process's number (execve(2)).
    tid_ = pid;
    waited = wait_for_stop(tid_, info);
  }
  if (!waited || info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED) {
    // Only its tracer can reap a thread; if we do not, its process cannot end.
    if (waited && tid_ != pid) ::waitpid(tid_, nullptr, __WALL);
    return State::gone;
  }
  // si_status holds the stop's whole code (kernel/exit.c, wait_task_stopped): a signal, with
  // PTRACE_EVENT_STOP above it if our interrupt caused it (or a job control stop, which stays in force after
  // a detach).
  if (info.si_status >> 8 != PTRACE_EVENT_STOP) {
    count_time();
    ::ptrace(PTRACE_DETACH, tid_, nullptr, static_cast<uintptr_t>(info.si_status & 0x7f));
    return State::signalled;
  }
  return State::stopped;
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

// To be called while the thread is stopped: the kernel updates its queueing time only when it gets a CPU.
void ThreadStop::count_time() {
  const auto waited = static_cast<Nanoseconds>(queued(thread_) - queued_before_);
  const Nanoseconds ours = clock_now(CLOCK_THREAD_CPUTIME_ID) - cpu_begun_;
  counts_.stood += std::max<Nanoseconds>(clock_now() - begun_ - waited - ours, 0);
}

void ThreadStop::let_go() {
  if (state_ != State::stopped) return;
  count_time();
  ::ptrace(PTRACE_DETACH, tid_, nullptr, nullptr);
  limit_.end();
  state_ = State::gone;
}

}  // namespace phlox::process
