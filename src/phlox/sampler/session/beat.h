// Looks at several processes at one moment: sampler threads that stand on the same CPU wake together, one of
// them by a timer, the others by that one, before it begins. So the programs there are interrupted once for
// all of them, and whoever looks next finds the kernel's and our own code in the caches: with four processes
// on two busy CPUs a look took some 79 us of a CPU of whoever waits for the timer, and 65 us of the others.
// What has to be done now and then and needs no thread of its own (errands) is done by whoever is up. Made by
// the recorder; for threads of the real-time class: in any other nobody says who runs first, the woken one or
// a program.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/sampler/capture/schedule.h"
#include "phlox/sampler/capture/waker.h"

namespace phlox::sampler {

class Beat {
 public:
  // `errand`: done in a turn's place, so in microseconds; waits for nothing.
  Beat(double rate_hz, std::function<void(Nanoseconds now)> errand);
  Beat(const Beat&) = delete;
  Beat& operator=(const Beat&) = delete;

  Nanoseconds interval() const { return interval_; }

  struct Woken {
    Nanoseconds at = 0;
    uint64_t missed = 0;  // moments since its last one
    bool by_perf = false;
  };

 private:
  struct Place;

 public:
  // Of one sampler thread, which alone uses it.
  class Seat {
   public:
    explicit Seat(Beat& beat) : beat_(beat) {}
    ~Seat() { leave(); }
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

    // Sleeps until the next moment of those on this CPU, where the calling thread is pinned.
    Woken wait(int cpu);
    // Is looked for elsewhere, or rests: nobody is woken for it.
    void leave();

   private:
    Beat& beat_;
    Place* place_ = nullptr;
    uint32_t beats_ = 0;   // of the place, that it has seen
    uint64_t missed_ = 0;  // of them
  };

 private:
  // More on one CPU have several places there: all of them in a row would keep it for too long.
  static constexpr size_t kMostSeats = 4;
  struct Place {
    Place(int at, Nanoseconds interval);
    std::mutex mutex;  // of all but `beats`
    const int cpu;
    size_t seats = 0;
    size_t waiting = 0;  // for the one who waits for the timer
    bool is_led = false;
    bool by_perf = false;
    std::atomic<uint32_t> beats{0};
    uint64_t missed = 0;         // by the schedule
    Schedule schedule;           // of who leads, without the lock
    std::optional<Waker> waker;  // of who leads; none: nobody sits here
  };
  Place& sit_down(int cpu);
  Nanoseconds lead(Place& place, std::unique_lock<std::mutex>& lock);

  const Nanoseconds interval_;
  std::function<void(Nanoseconds)> errand_;
  std::mutex mutex_;  // of the list of places
  std::vector<std::unique_ptr<Place>> places_;
};

}  // namespace phlox::sampler
