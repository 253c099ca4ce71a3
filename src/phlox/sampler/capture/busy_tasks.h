// Which threads of a process use CPU time, by the kernel's accounts alone. Among thousands of threads, those
// that compute outside of Python, without the GIL, are not found by their thread states. A thread of ours
// reads the accounts, because that takes milliseconds, and a worker may run in the real-time class. Decides
// nothing. Called by PythonThreads.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "phlox/base/clock.h"

namespace phlox::sampler {

class BusyTasks {
 public:
  explicit BusyTasks(pid_t pid) : pid_(pid) {}
  ~BusyTasks();
  BusyTasks(const BusyTasks&) = delete;
  BusyTasks& operator=(const BusyTasks&) = delete;

  // The threads that used CPU time between the last two readings of the accounts. The first call begins the
  // readings; they pause if there is no call for a while. Empty if no thread can be started.
  std::unordered_set<pid_t> busy();

 private:
  void run();
  void read_accounts();

  pid_t pid_;
  std::unordered_map<pid_t, uint64_t> used_;  // ns, by thread; of run() alone
  std::mutex mutex_;
  std::condition_variable asked_;
  Nanoseconds asked_at_ = 0;        // guarded by mutex_
  bool end_ = false;                // guarded by mutex_
  std::unordered_set<pid_t> busy_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace phlox::sampler
