// Which threads have a perf event of their own, where there are more threads than there may be events: those
// that ran lately. Where even those are too many, they take turns. Pure: opens nothing, is given the time.
// Called by the worker that holds the turn lock.
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
  // An event of a thread that has not run for so long is closed, whether or not somebody wants it.
  static constexpr Nanoseconds kIdle = 2 * kSecond;
  // Wanted by somebody who runs, it goes over after this much without running,
  static constexpr Nanoseconds kSpare = kSecond / 10;
  // or, with everybody running, after this long a turn.
  static constexpr Nanoseconds kTurn = kSecond;
  // In every such time, no more events than this go over: opening and closing one takes some 30 us.
  static constexpr Nanoseconds kPace = kSecond / 10;
  static constexpr size_t kChangesInPace = 16;

  explicit EventBudget(size_t most) : most_(most), waiting_since_(std::numeric_limits<Nanoseconds>::max()) {}

  struct Grant {
    bool open = false;
    pid_t close_first = 0;  // 0: nobody; forgotten here
  };
  // A thread without an event was found running.
  Grant ask(pid_t tid, Nanoseconds now);
  void opened(pid_t tid, Nanoseconds now);
  // It has an event, and ran.
  void ran(pid_t tid, Nanoseconds now);
  void closed(pid_t tid) { held_.erase(tid); }
  // Whose events are to be closed; forgotten here.
  std::vector<pid_t> take_idle(Nanoseconds now);
  // The kernel grants no more than there are.
  void no_more() { most_ = held_.size(); }

  size_t size() const { return held_.size(); }
  size_t most() const { return most_; }
  // Threads that asked lately and went without.
  size_t without() const { return without_.size(); }

 private:
  struct Held {
    Nanoseconds since = 0, ran = 0;
  };
  struct Waiting {
    Nanoseconds since = 0, asked = 0;  // for the first time, the last time
  };
  void next_pace(Nanoseconds now);
  size_t most_;
  std::unordered_map<pid_t, Held> held_;
  std::unordered_map<pid_t, Waiting> without_;
  Nanoseconds none_before_ = 0;  // nobody can give theirs away earlier
  Nanoseconds pace_start_ = 0;
  size_t changes_ = 0;         // since then
  Nanoseconds waiting_since_;  // whose turn it is: those who wait since then or longer
};

// How many events there may be at once, out of the descriptors that are left and the memory that may be
// locked: an event takes one descriptor and `each` bytes. The kernel counts locked memory per user and CPU
// first (kernel.perf_event_mlock_kb, default 516), then against RLIMIT_MEMLOCK.
size_t most_events(uint64_t descriptors, uint64_t mlock_kb, uint64_t cpus, uint64_t memlock_bytes,
                   uint64_t each);

}  // namespace phlox::sampler
