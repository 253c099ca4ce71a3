// The moments of samples. Each next moment is a random time after the last planned one: uniform between half
// an interval and one and a half intervals. So no periodic program can run in step with it, and the time
// since the last sample does not depend on what the target does at this one. Planned on an absolute time line
// (work does not lower the rate); missed moments are counted and not caught up. Pure: takes the time, keeps
// no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "phlox/base/clock.h"

namespace phlox::sampler {

// Wake-ups by a perf event with one period: setting its timer again costs a microsecond, and periods differ
// by up to a factor of three, so no program runs in step with more than these few.
inline constexpr int kSamePeriod = 4;

class Schedule {
 public:
  Schedule(Nanoseconds interval, uint64_t seed) : interval_(interval), state_(seed | 1) {}

  void start(Nanoseconds now) { planned_ = now; }
  void set_interval(Nanoseconds interval) { interval_ = interval; }
  Nanoseconds interval() const { return interval_; }

  // The moment of the next sample, later than `now`.
  Nanoseconds next(Nanoseconds now) {
    planned_ += draw();
    if (planned_ <= now) {
      const auto behind = static_cast<uint64_t>(now - planned_);
      const auto step = static_cast<uint64_t>(interval_ > 0 ? interval_ : 1);
      missed_ += 1 + behind / step;
      planned_ = now + draw();
    }
    return planned_;
  }
  uint64_t missed() const { return missed_; }
  void missed_more(uint64_t samples) { missed_ += samples; }

  // A random interval.
  Nanoseconds draw() {
    // xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016).
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    const double unit = static_cast<double>((state_ * 0x2545F4914F6CDD1DULL) >> 11) * 0x1.0p-53;
    return static_cast<Nanoseconds>((0.5 + unit) * static_cast<double>(interval_));
  }

 private:
  Nanoseconds interval_;
  Nanoseconds planned_ = 0;
  uint64_t state_;
  uint64_t missed_ = 0;
};

inline constexpr uint64_t kLongestIdlePause = 16;  // turns
// How many turns until a thread that did not run in this many samples is checked again: threads that never
// run are checked less and less often, so that hundreds of sleeping ones cost little.
inline uint64_t idle_pause(uint32_t idle_samples, uint64_t longest = kLongestIdlePause,
                           uint32_t patience = 8) {
  return idle_samples > patience ? std::min<uint64_t>(longest, idle_samples / patience + 1) : 1;
}
// For one of many threads, by time if turns are quick: checking each of a hundred takes longer than a sample.
inline uint64_t idle_pause_in_crowd(uint32_t idle_samples, Nanoseconds interval) {
  constexpr Nanoseconds kLongest = 64'000'000, kAtFull = 4'000'000;
  if (interval <= 0) return idle_pause(idle_samples);
  const auto longest = static_cast<uint64_t>(kLongest / interval);
  const auto patience = static_cast<uint32_t>(std::clamp<Nanoseconds>(8 * interval / kAtFull, 2, 8));
  return idle_pause(idle_samples, std::max(kLongestIdlePause, longest), patience);
}

}  // namespace phlox::sampler
