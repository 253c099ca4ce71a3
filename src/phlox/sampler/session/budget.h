// The sampling rate at which no more is taken from the target than `--max-overhead` allows. Judged over a
// second at a time, so that one unusual turn does not lower the rate; at once if half of a second's allowance
// is already taken. Raised again, up to the requested rate, when there is room. One for each recorded
// process. Pure: gets the time and the amount taken. Called by the worker that holds the turn lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "phlox/base/clock.h"

namespace phlox::sampler {

class Budget {
 public:
  static constexpr Nanoseconds kWindow = kSecond;
  // Never slower than this: a slower recording would show nothing.
  static constexpr double kLowestRate = 1;
  // A sample may cost what the budget allows at this rate; a longer one is cut.
  static constexpr double kRateOfDearest = 5;

  // `max_percent`: of one CPU; none: no budget. `asked_hz`: 0: as often as the budget allows.
  Budget(std::optional<double> max_percent, double asked_hz)
      : max_percent_(max_percent), asked_hz_(asked_hz) {}

  // `taken`: from the target, since the beginning. Returns the new rate in place of `rate_hz`; none: no
  // change. If much time was spent on rests, it is left out: they keep a rate that is too high within the
  // budget.
  std::optional<double> judge(Nanoseconds now, Nanoseconds taken, double rate_hz);

  // What one sample may take from the target; none: as much as it needs.
  static std::optional<Nanoseconds> longest_sample(std::optional<double> max_percent) {
    if (!max_percent) return {};
    return static_cast<Nanoseconds>(*max_percent / 100 * kSecond / kRateOfDearest);
  }

  // `cost` of `taken` samples, as if `skipped` more had been taken: the kernel skips a sample that the budget
  // has no room for before the rate is judged.
  static Nanoseconds with_skipped(Nanoseconds cost, uint64_t taken, uint64_t skipped) {
    if (taken == 0) return cost;
    return static_cast<Nanoseconds>(static_cast<double>(cost) * static_cast<double>(taken + skipped) /
                                    static_cast<double>(taken));
  }

  // How long to take nothing after a turn: time taken beyond the budget is waited for, so a stack of
  // thousands of frames takes no more than any other. The budget begins with a quarter of a second's
  // allowance, and saves at most half of one.
  Nanoseconds rest(Nanoseconds now, Nanoseconds taken);

  // The part of the overhead that is charged to the rate: the cost of its samples, plus at most the same
  // amount of other cost. Other cost does not fall with the rate, and half of the budget is reserved for
  // samples.
  static Nanoseconds of_rate(Nanoseconds samples, Nanoseconds else_taken) {
    return samples + std::min(samples, std::max(else_taken, Nanoseconds(0)));
  }

 private:
  std::optional<double> max_percent_;
  double asked_hz_;
  Nanoseconds start_ = 0;  // of this window
  Nanoseconds taken_ = 0;  // before it
  double room_ = 0;        // ns that may be taken now, as of `rest_asked_`
  Nanoseconds rest_asked_ = 0, taken_before_ = 0;
  Nanoseconds rest_ = 0;    // the last one, which may not be over
  Nanoseconds rested_ = 0;  // in this window, without that one
};

// Inside the kernel, each reported wait costs some microseconds, whatever the rate. The shortest wait that is
// reported by itself, so that the reports, or all switches, take no more than half of the budget. Pure, as
// above.
class ShortestWait {
 public:
  static constexpr Nanoseconds kLeast = kSecond / 1000, kMost = 32 * kLeast;

  explicit ShortestWait(std::optional<double> max_percent) : max_percent_(max_percent) {}

  // `taken`: the cost to be limited, since the beginning.
  Nanoseconds judge(Nanoseconds now, Nanoseconds taken);

 private:
  std::optional<double> max_percent_;
  Nanoseconds shortest_ = kLeast;
  Nanoseconds start_ = 0, taken_ = 0;
};

// When to set the kernel's clock. Setting it restarts its period: a slow clock that is set more often than it
// ticks never ticks, and its next sample would represent all of that time. Pure, as above.
class ClockSetting {
 public:
  // Set again at this many ticks, with another jitter; otherwise it follows its measurement.
  static constexpr double kTicks = 8;

  bool is_due(Nanoseconds now, double rate_hz) {
    const bool is_old = static_cast<double>(now - set_at_) * rate_hz >= kTicks * static_cast<double>(kSecond);
    if (rate_hz == rate_hz_ && !is_old) return false;
    rate_hz_ = rate_hz;
    set_at_ = now;
    return true;
  }

 private:
  double rate_hz_ = 0;
  Nanoseconds set_at_ = 0;
};

}  // namespace phlox::sampler
