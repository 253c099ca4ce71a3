#include "phlox/sampler/session/budget.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace phlox::sampler {

std::optional<double> Budget::judge(Nanoseconds now, Nanoseconds taken, double rate_hz) {
  if (start_ == 0) start_ = now;
  const Nanoseconds window = now - start_;
  const Nanoseconds in_window = taken - taken_;
  const double allowed = max_percent_.value_or(100) / 100;
  // In a shorter window, one turn cannot be distinguished from the rate.
  constexpr Nanoseconds kShortest = kWindow / 50;
  const bool is_dear = window >= kShortest &&
                       static_cast<double>(in_window) > allowed * static_cast<double>(kWindow) / 2 &&
                       static_cast<double>(in_window) > allowed * static_cast<double>(window);
  if (window < kWindow && !is_dear) return {};
  // So few samples can show that the rate is too high, but never that it is too low.
  constexpr double kFewSamples = 4;
  const bool is_few = static_cast<double>(window) * rate_hz < kFewSamples * static_cast<double>(kSecond);
  if (max_percent_ && is_few && static_cast<double>(in_window) <= allowed * static_cast<double>(window))
    return {};
  start_ = now;
  taken_ = taken;
  const Nanoseconds rested = std::exchange(rested_, 0);
  if (!max_percent_) return {};
  // A single expensive turn is followed by a short rest, which does not mean that the rate is too high.
  const bool is_much = rested > window / 5;
  const Nanoseconds sampled = is_much ? window - std::min(rested, window / 10 * 9) : window;
  const double percent = 100.0 * static_cast<double>(in_window) / static_cast<double>(sampled);
  double rate = rate_hz;
  if (percent > *max_percent_) {
    rate = std::max(kLowestRate, rate * *max_percent_ / percent * 0.95);
  } else if (asked_hz_ > 0 && rate < asked_hz_ && percent < 0.7 * *max_percent_) {
    // With much room, the rate rises again in a few steps: only the beginning was expensive.
    const double step = std::clamp(0.9 * *max_percent_ / std::max(percent, 1e-6), 1.25, 4.0);
    rate = std::min(asked_hz_, rate * step);
  }
  return std::abs(rate - rate_hz) > std::min(0.5, rate_hz / 10) ? std::optional(rate) : std::nullopt;
}

Nanoseconds Budget::rest(Nanoseconds now, Nanoseconds taken) {
  if (!max_percent_ || *max_percent_ <= 0) return 0;
  const double allowed = *max_percent_ / 100;
  const double most = allowed * static_cast<double>(kWindow) / 2;
  rested_ += std::min(std::exchange(rest_, 0), now - rest_asked_);
  if (rest_asked_ == 0) {
    room_ = most / 2;
  } else {
    room_ = std::min(most, room_ + allowed * static_cast<double>(now - rest_asked_));
  }
  room_ -= static_cast<double>(taken - std::exchange(taken_before_, taken));
  rest_asked_ = now;
  constexpr auto kLongest = static_cast<Nanoseconds>(kSecond / kLowestRate);
  if (room_ >= 0) return 0;
  // A rest longer than an interval at the lowest rate is cut short, and the remainder is not owed.
  room_ = std::max(room_, -allowed * static_cast<double>(kLongest));
  rest_ = static_cast<Nanoseconds>(-room_ / allowed);
  return rest_;
}

Nanoseconds ShortestWait::judge(Nanoseconds now, Nanoseconds taken) {
  const Nanoseconds window = now - std::exchange(start_, now);
  const Nanoseconds in_window = taken - std::exchange(taken_, taken);
  if (!max_percent_ || window <= 0 || window == now) return shortest_;
  const double share = 100.0 * static_cast<double>(in_window) / static_cast<double>(window) / *max_percent_;
  // Reporting half as often costs half as much at best; at a quarter there is room for more reports.
  if (share > 0.5) shortest_ = std::min(2 * shortest_, kMost);
  if (share < 0.2) shortest_ = std::max(shortest_ / 2, kLeast);
  return shortest_;
}

}  // namespace phlox::sampler
