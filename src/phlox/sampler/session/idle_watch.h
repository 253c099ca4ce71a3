// Programs in which no thread runs at the moment: one thread of ours and one schedule for all of them, so
// that hundreds of sleeping processes cost little. A sampler thread whose program has not run lately sleeps
// here. At each moment of the schedule the watch asks the kernel for the process's CPU time, over all its
// threads: one call, no file, no memory of it. While that is unchanged, no thread of it has run, and each is
// where it was last sampled. Made by the recorder; sampler threads call rest().
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/process/process_clock.h"
#include "phlox/sampler/capture/schedule.h"

namespace phlox::sampler {

class IdleWatch {
 public:
  explicit IdleWatch(double rate_hz);
  ~IdleWatch();  // call it when no thread rests; ends the thread
  IdleWatch(const IdleWatch&) = delete;
  IdleWatch& operator=(const IdleWatch&) = delete;

  struct Rest {
    bool ran = false;        // or is gone; false: it is time to report that it has not run, or `stop`
    uint64_t checks = 0;     // checks that found it unchanged
    Nanoseconds still_at{};  // the time of the last of them
  };
  // Sleeps until the process has used more than `used`, for longest_rest(), or until `stop` and wake(). It is
  // checked about once an `interval`, not more often than the watch's own.
  Rest rest(const process::ProcessClock& clock, Nanoseconds used, Nanoseconds interval,
            const std::atomic<bool>& stop);
  // Wakes the threads whose `stop` is set.
  void wake();
  // Checks, if it is time, in place of its own thread, which does so only if no other thread has helped
  // lately. Called by any thread that is awake, of the real-time class like that one.
  void help(Nanoseconds now);

  // How long a report that a process slept may be delayed, and lost if the recorder is killed. A report takes
  // two wake-ups, so with many resting threads there are fewer of them.
  static constexpr Nanoseconds longest_rest(size_t resting) {
    return std::clamp<Nanoseconds>(static_cast<Nanoseconds>(resting) * (kSecond / 200), kSecond / 4, kSecond);
  }

 private:
  // A thread that rests here, on its own stack.
  struct Sleeper {
    const std::atomic<bool>& stop;
    Rest rest{};
    bool over = false;
    std::condition_variable woken{};
  };
  // The data that is read at each moment, for all of them, is contiguous.
  struct Entry {
    process::ProcessClock clock;
    Nanoseconds used, interval, until, asked, still_at;
    uint64_t checks;
    Sleeper* sleeper;
  };
  // How many intervals it waits for a helper.
  static constexpr Nanoseconds kPatience = 5;
  void run();
  Nanoseconds next_check();
  void check(Nanoseconds now);
  void end(size_t index, bool ran);

  const Nanoseconds interval_;
  std::mutex mutex_;  // protects everything below
  std::condition_variable changed_;
  std::vector<Entry> resting_;
  Schedule schedule_;
  Nanoseconds checked_at_ = 0;
  bool is_helped_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace phlox::sampler
