// The threads that look, where several do: one on each CPU where a thread of the target may be caught by its
// event, since going from CPU to CPU costs more than a look (25 us: a stop of both of them). One at a time
// holds the turn lock and takes a turn; what a turn uses is nobody else's meanwhile. Decides nothing.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"

namespace phlox::sampler {

class TurnLock {
 public:
  // Who waits for it keeps a thread that it has caught from running on, so not for long: false, after that.
  bool try_lock();
  // However long it takes, asleep in between, so that nobody is kept from a CPU by it. True: it slept, and
  // whoever was caught has run on.
  bool lock();
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr Nanoseconds kPatience = 150'000;
  std::atomic<bool> taken_{false};
};

// One of them, as the source of events knows it.
struct Worker {
  bool events_only = false;     // another one sees to those that no event catches
  int cpu = -1;                 // it is pinned there; -1: nowhere yet
  Nanoseconds waits_since = 0;  // its last wait began
  // Wakes it where it waits: there is something else to wait for, or nothing any more.
  void wake() const;

  pid_t tid = 0;
  uint64_t round = 0;  // in which it had its last turn
  uint64_t list = 0;   // what it waits for is the how-manieth such list
  Descriptor wake_up;  // an eventfd
  // What it waits for, and whose events they are; `wake_up` is the first.
  std::vector<pollfd> wanted;
  std::vector<pid_t> tids;
};

}  // namespace phlox::sampler
