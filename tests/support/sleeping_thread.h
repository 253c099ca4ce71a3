// Threads of ours and of a child that do only one thing: the kernel reports them like a target's threads,
// while their Python is fake memory (fake_interpreter.h).
#pragma once

#include <sys/types.h>

#include <thread>

namespace phlox::test {

// Sleeps in read(), except for moments.
class SleepingThread {
 public:
  SleepingThread();
  ~SleepingThread();
  SleepingThread(const SleepingThread&) = delete;
  SleepingThread& operator=(const SleepingThread&) = delete;

  pid_t tid() const { return tid_; }
  // Makes it run for a moment and sleep again.
  void wakes();

 private:
  void until_asleep();

  int pipe_[2];
  std::thread thread_;
  pid_t tid_ = 0;
};

// A process that computes and ends with this object. ptrace can stop it, unlike a thread of ours.
class SpinningProcess {
 public:
  SpinningProcess();
  ~SpinningProcess();
  SpinningProcess(const SpinningProcess&) = delete;
  SpinningProcess& operator=(const SpinningProcess&) = delete;

  pid_t pid() const { return pid_; }
  // It runs and is not traced.
  bool runs_on() const;

 private:
  pid_t pid_ = 0;
};

}  // namespace phlox::test
