// How often the target is looked at, so that no more is taken from it than `--max-overhead` allows. Judged
// over a second at a time, so that one odd turn does not lower the rate; at once where half of what a second
// allows is taken already. Raised again, up to what was asked for, once there is room. One for each process
// that is recorded. Pure: is given the time and what was taken. Called by the worker that holds the turn
// lock.
#pragma once

#include <algorithm>
#include <optional>

#include "phlox/base/clock.h"

namespace phlox::sampler {

class Budget {
 public:
  static constexpr Nanoseconds kWindow = kSecond;
  // Never slower than this, or the recording says nothing.
  static constexpr double kLowestRate = 5;

  // `max_percent`: of one CPU; none: no budget. `asked_hz`: 0: as often as the budget allows.
  Budget(std::optional<double> max_percent, double asked_hz)
      : max_percent_(max_percent), asked_hz_(asked_hz) {}

  // `taken`: from the target, since the beginning. Gives the rate that it should be looked at from now on in
  // place of `rate_hz`; none: that one.
  std::optional<double> judge(Nanoseconds now, Nanoseconds taken, double rate_hz);

  // How long nothing is to be taken after a turn: what was taken beyond the budget is waited for, so that a
  // stack of thousands of frames takes no more than any other. A quarter of a second's worth is there at the
  // beginning, and half of one is saved up at the most.
  Nanoseconds rest(Nanoseconds now, Nanoseconds taken);

  // Of what was taken, what a rate answers for: its own looks, and of all else no more than as much again.
  // That does not fall with the rate, and half of the budget is left to looks.
  static Nanoseconds of_rate(Nanoseconds looks, Nanoseconds else_taken) {
    return looks + std::min(looks, std::max(else_taken, Nanoseconds(0)));
  }

 private:
  std::optional<double> max_percent_;
  double asked_hz_;
  Nanoseconds start_ = 0;  // of this window
  Nanoseconds taken_ = 0;  // before it
  double room_ = 0;        // ns that may be taken now, as of `rest_asked_`
  Nanoseconds rest_asked_ = 0, taken_before_ = 0;
};

// Inside the kernel each wait that is reported takes some microseconds, at whatever rate samples are taken.
// How long a wait has to last to be reported by itself, so that the reports, or all switches, take no more
// than half of the budget. Pure, as above.
class ShortestWait {
 public:
  static constexpr Nanoseconds kLeast = kSecond / 1000, kMost = 32 * kLeast;

  explicit ShortestWait(std::optional<double> max_percent) : max_percent_(max_percent) {}

  // `taken`: for what is to be limited, since the beginning.
  Nanoseconds judge(Nanoseconds now, Nanoseconds taken);

 private:
  std::optional<double> max_percent_;
  Nanoseconds shortest_ = kLeast;
  Nanoseconds start_ = 0, taken_ = 0;
};

// When the kernel's clock is to be set. Setting it begins its period anew: a slow clock that is set more
// often than it ticks never ticks, and the next sample stands for all of that time. Pure, as above.
class ClockSetting {
 public:
  // Set anew at this many ticks, with another jitter: else it goes along with what it measures.
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
