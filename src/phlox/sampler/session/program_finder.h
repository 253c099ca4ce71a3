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
#include "phlox/sampler/session/finder.h"
#include "phlox/sampler/session/tree_search.h"

namespace phlox::sampler {

class ProgramFinder : public Finder {
 public:
  // `least_pause`: between two searches.
  ProgramFinder(TreeSearch search, Nanoseconds least_pause);
  ~ProgramFinder() override;  // ends the thread

  int descriptor() const override { return found_.get(); }
  std::vector<Found> take() override;
  void want(size_t processes) override;
  void help(Nanoseconds now) override;
  void check_again(pid_t pid) override;
  void births_are_reported(bool reported) override;
  State state() override;

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
  const Nanoseconds least_pause_;
  std::thread thread_;
};

}  // namespace phlox::sampler
