// Finds the Pythons of a tree of processes while others are recorded: a thread of its own around TreeSearch.
// So a search delays no ring, and a child that lives for some milliseconds is found.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/sampler/session/tree_search.h"

namespace phlox::sampler {

class ProgramFinder {
 public:
  struct Found {
    std::unique_ptr<Program> program;
    Descriptor pidfd;
    pid_t parent = 0;
  };
  explicit ProgramFinder(TreeSearch search);
  ~ProgramFinder();  // ends the thread

  // Readable when something was found.
  int descriptor() const { return found_.get(); }
  std::vector<Found> take();
  // How many more are wanted at the moment; 0: it rests.
  void want(size_t processes);
  // Checks whether there is something to search for, in its thread's place, which then sleeps longer. Called
  // by any thread that is awake; waits for nothing.
  void help(Nanoseconds now);
  // The program of this process has ended by execve.
  void check_again(pid_t pid);
  // Whether check_again() is called for each execve of the tree, and forks are reported by others. Then few
  // processes are left to find, and searches are rare.
  void births_are_reported(bool reported);

  struct State {
    uint64_t checks = 0;  // whole ones
    bool any_left = true;
    std::string refused;
    TreeSearch::Brief too_brief;
  };
  State state();

 private:
  void run();
  void sleep(std::unique_lock<std::mutex>& lock, Nanoseconds pause);

  Descriptor found_;
  std::mutex mutex_;  // protects everything below
  std::condition_variable changed_;
  std::vector<Found> waiting_;
  std::vector<pid_t> again_;
  size_t wanted_ = 0;
  State state_;
  std::optional<uint64_t> quiet_until_after_;  // TreeSearch's
  Nanoseconds asked_at_ = 0;                   // by help()
  bool is_due_ = false;
  bool births_reported_ = false;
  std::atomic<bool> stop_{false};
  TreeSearch search_;  // the thread's
  std::thread thread_;
};

}  // namespace phlox::sampler
