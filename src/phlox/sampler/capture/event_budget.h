// Which threads have a perf event of their own, if there are more threads than there may be events: those
// that ran lately. If even those are too many, they take turns. Pure: opens nothing, gets the time. Called by
// the worker that holds the turn lock.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "phlox/base/clock.h"

namespace phlox::sampler {

class EventBudget {
 public:
  // An event of a thread that has not run for this long is closed, even if no other thread wants it.
  static constexpr Nanoseconds kIdle = 2 * kSecond;
  // If a running thread wants it, it passes on after this much time without running,
  static constexpr Nanoseconds kSpare = kSecond / 10;
  // or, if all are running, after this long a turn.
  static constexpr Nanoseconds kTurn = kSecond;
  // In every such time, at most this many events pass on: opening and closing one takes some 30 us.
  static constexpr Nanoseconds kPace = kSecond / 10;
  static constexpr size_t kChangesInPace = 16;

  explicit EventBudget(size_t most) : most_(most), waiting_since_(std::numeric_limits<Nanoseconds>::max()) {}

  struct Grant {
    bool open = false;
    pid_t close_first = 0;  // 0: none; dropped here
  };
  // A thread without an event was found running.
  Grant ask(pid_t tid, Nanoseconds now);
  void opened(pid_t tid, Nanoseconds now);
  // It has an event, and ran.
  void ran(pid_t tid, Nanoseconds now);
  void closed(pid_t tid) { held_.erase(tid); }
  // The threads whose events must be closed; dropped here.
  std::vector<pid_t> take_idle(Nanoseconds now);
  // The kernel grants no more than the present number.
  void no_more() { most_ = held_.size(); }

  size_t size() const { return held_.size(); }
  size_t most() const { return most_; }
  // Threads that asked lately and got none.
  size_t without() const { return without_.size(); }

 private:
  struct Held {
    Nanoseconds since = 0, ran = 0;
  };
  struct Waiting {
    Nanoseconds since = 0, asked = 0;  // of the first and of the last request
  };
  void next_pace(Nanoseconds now);
  size_t most_;
  std::unordered_map<pid_t, Held> held_;
  std::unordered_map<pid_t, Waiting> without_;
  Nanoseconds none_before_ = 0;  // no event can pass on earlier
  Nanoseconds pace_start_ = 0;
  size_t changes_ = 0;         // since then
  Nanoseconds waiting_since_;  // the threads that have waited since then or longer are next
};

// How many events there may be at once, from the free descriptors and the lockable memory: an event takes one
// descriptor and `each` bytes. The kernel counts locked memory per user and CPU first
// (kernel.perf_event_mlock_kb, default 516), then against RLIMIT_MEMLOCK.
size_t most_events(uint64_t descriptors, uint64_t mlock_kb, uint64_t cpus, uint64_t memlock_bytes,
                   uint64_t each);

}  // namespace phlox::sampler
