#include "support/sleeping_thread.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <future>

#include "phlox/process/thread_probe.h"

namespace phlox::test {

SleepingThread::SleepingThread() {
  if (::pipe(pipe_) != 0) std::abort();
  std::promise<pid_t> started;
  thread_ = std::thread([this, &started] {
    started.set_value(::gettid());
    char nothing = 0;
    while (::read(pipe_[0], &nothing, 1) == 1) {
    }
  });
  tid_ = started.get_future().get();
  until_asleep();
}

SleepingThread::~SleepingThread() {
  ::close(pipe_[1]);
  thread_.join();
  // join() returns slightly before the kernel has removed the task.
  while (process::ThreadProbe(::getpid(), tid_).stat()) std::this_thread::yield();
  ::close(pipe_[0]);
}

void SleepingThread::wakes() {
  const auto before = process::ThreadProbe(::getpid(), tid_).schedstat();
  if (::write(pipe_[1], "", 1) != 1) std::abort();
  while (process::ThreadProbe(::getpid(), tid_).schedstat()->run_ns == before->run_ns)
    std::this_thread::yield();
  until_asleep();
}

void SleepingThread::until_asleep() {
  process::ThreadProbe probe(::getpid(), tid_);
  while (probe.stat()->state != 'S') std::this_thread::yield();
}

SpinningProcess::SpinningProcess() {
  pid_ = ::fork();
  if (pid_ < 0) std::abort();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile unsigned turns = 0;;) turns = turns + 1;
  }
  // Wait until it has left fork() and prctl().
  process::ThreadProbe probe(pid_, pid_);
  while (probe.schedstat()->run_ns < 5'000'000) std::this_thread::yield();
}

SpinningProcess::~SpinningProcess() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool SpinningProcess::runs_on() const {
  process::ThreadProbe probe(pid_, pid_);
  const auto stat = probe.stat();
  const auto before = probe.schedstat();
  if (!stat || !before || stat->state != 'R') return false;
  // However busy the machine is, it gets a CPU eventually.
  while (probe.schedstat()->run_ns == before->run_ns) std::this_thread::yield();
  return true;
}

}  // namespace phlox::test
