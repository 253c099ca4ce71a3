// Programs in which nothing runs at the moment: one thread of ours and one schedule for all of them, so that
// hundreds of sleeping processes cost little. A sampler thread whose program has not run lately sleeps here.
// At each moment of the schedule the watch asks the kernel how much CPU time the process has used, all its
// threads added up: one call, no file, no memory of it. As long as that stays what it was, no thread of it
// has run, and each is where it was seen last. Made by the recorder; rest() is called by sampler threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/sampler/capture/schedule.h"
#include "phlox/target/process_clock.h"

namespace phlox::sampler {

class IdleWatch {
 public:
  explicit IdleWatch(double rate_hz);
  ~IdleWatch();  // when nobody rests any more; ends the thread
  IdleWatch(const IdleWatch&) = delete;
  IdleWatch& operator=(const IdleWatch&) = delete;

  struct Rest {
    bool ran = false;        // or is gone; false: it is time to say that it has not, or `stop`
    uint64_t looks = 0;      // that found it as it was
    Nanoseconds still_at{};  // the last of them
  };
  // Sleeps until the process has used more than `used`, for longest_rest(), or until `stop` and wake(). It is
  // asked for about once an `interval`, not more often than the watch's own.
  Rest rest(const target::ProcessClock& clock, Nanoseconds used, Nanoseconds interval,
            const std::atomic<bool>& stop);
  // Those whose `stop` is set.
  void wake();
  // Looks, if it is time, for its own thread, which does so only when nobody has helped it lately. Called by
  // whoever is up, of the real-time class like that one.
  void help(Nanoseconds now);

  // What is not said for so long is lost when the recorder is killed: that a process slept on. To say it
  // takes two wake-ups, so where so many rest, it is said less often.
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
  // What is gone through at each moment, for all of them, lies side by side.
  struct Entry {
    target::ProcessClock clock;
    Nanoseconds used, interval, until, asked, still_at;
    uint64_t looks;
    Sleeper* sleeper;
  };
  // Intervals that it waits for who has helped it.
  static constexpr Nanoseconds kPatience = 5;
  void run();
  Nanoseconds next_look();
  void look(Nanoseconds now);
  void end(size_t index, bool ran);

  const Nanoseconds interval_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::vector<Entry> resting_;
  Schedule schedule_;
  Nanoseconds looked_at_ = 0;
  bool is_helped_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace phlox::sampler
