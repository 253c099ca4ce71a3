// Programs in which nothing runs at the moment: one thread of ours and one schedule for all of them, so that
// hundreds of sleeping processes cost little. A sampler thread whose program has not run lately sleeps here.
// At each moment of the schedule the watch asks the kernel how much CPU time the process has used, all its
// threads added up: one call, no file, no memory of it. As long as that stays what it was, no thread of it
// has run, and each is where it was seen last. Made by the recorder; rest() is called by sampler threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "phlox/base/clock.h"
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
  // Sleeps until the process has used more than `used`, for kLongestRest, or until `stop` and wake(). It is
  // asked for about once an `interval`, not more often than the watch's own.
  Rest rest(const target::ProcessClock& clock, Nanoseconds used, Nanoseconds interval,
            const std::atomic<bool>& stop);
  // Those whose `stop` is set.
  void wake();

  // What is not said for so long is lost when the recorder is killed.
  static constexpr Nanoseconds kLongestRest = kSecond / 4;

 private:
  struct Resting {
    const target::ProcessClock& clock;
    Nanoseconds used, interval;
    const std::atomic<bool>& stop;
    Nanoseconds until = 0, asked = 0;
    Rest rest{};
    bool over = false;
    std::condition_variable woken{};
  };
  void run();
  void look(Nanoseconds now);

  const Nanoseconds interval_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::list<Resting*> resting_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace phlox::sampler
