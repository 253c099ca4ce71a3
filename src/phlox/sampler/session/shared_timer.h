// Samples several processes at one moment: sampler threads on the same CPU wake up together, one of them by a
// timer, the others by that one, before it begins. So the programs there are interrupted once for all of
// them, and the next sampler thread finds the kernel's and our own code in the caches. With four processes on
// two busy CPUs a sample took some 79 us of CPU for the thread that waits for the timer, and 65 us for the
// others. A thread that is awake also does small jobs that need no thread of their own (tasks). Made by the
// recorder; for threads of the real-time class: in any other class it is undefined whether the woken thread
// or a program runs first.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/sampler/capture/sample_timer.h"
#include "phlox/sampler/capture/schedule.h"

namespace phlox::sampler {

class SharedTimer {
 public:
  // `task`: done in place of a turn, so in microseconds; waits for nothing.
  SharedTimer(double rate_hz, std::function<void(Nanoseconds now)> task);
  SharedTimer(const SharedTimer&) = delete;
  SharedTimer& operator=(const SharedTimer&) = delete;

  Nanoseconds interval() const { return interval_; }

  struct Woken {
    Nanoseconds at = 0;
    uint64_t missed = 0;  // moments since its last wake-up
    bool by_perf = false;
  };

 private:
  struct Place;

 public:
  // The seat of one sampler thread, used by it alone.
  class Slot {
   public:
    explicit Slot(SharedTimer& timer) : timer_(timer) {}
    ~Slot() { leave(); }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    // Sleeps until the next moment of the threads on this CPU, where the calling thread is pinned.
    Woken wait(int cpu);
    // The thread moves to another CPU, or rests: it is not woken up.
    void leave();

   private:
    SharedTimer& timer_;
    Place* place_ = nullptr;
    uint32_t ticks_ = 0;   // of the place, that it has taken part in
    uint64_t missed_ = 0;  // of them
  };

 private:
  // More threads on one CPU use several places there: all of them in a row would occupy it for too long.
  static constexpr size_t kMostSlots = 4;
  struct Place {
    Place(int at, Nanoseconds interval);
    std::mutex mutex;  // protects everything but `ticks`
    const int cpu;
    size_t slots = 0;
    size_t waiting = 0;  // threads that wait for the leader, which waits for the timer
    bool is_led = false;
    bool by_perf = false;
    std::atomic<uint32_t> ticks{0};
    uint64_t missed = 0;               // by the schedule
    Schedule schedule;                 // used by the leader, without the lock
    std::optional<SampleTimer> timer;  // the leader's; none: the place is empty
  };
  Place& join(int cpu);
  Nanoseconds lead(Place& place, std::unique_lock<std::mutex>& lock);

  const Nanoseconds interval_;
  std::function<void(Nanoseconds)> task_;
  std::mutex mutex_;  // protects the list of places
  std::vector<std::unique_ptr<Place>> places_;
};

}  // namespace phlox::sampler
