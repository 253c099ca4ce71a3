#include "phlox/sampler/session/budget.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace phlox::sampler {

std::optional<double> Budget::judge(Nanoseconds now, Nanoseconds taken, double rate_hz) {
  if (start_ == 0) start_ = now;
  const Nanoseconds window = now - start_;
  if (window < kWindow) return {};
  const Nanoseconds in_window = taken - taken_;
  start_ = now;
  taken_ = taken;
  if (!max_percent_) return {};
  const double percent = 100.0 * static_cast<double>(in_window) / static_cast<double>(window);
  double rate = rate_hz;
  if (percent > *max_percent_) {
    rate = std::max(kLowestRate, rate * *max_percent_ / percent * 0.95);
  } else if (asked_hz_ > 0 && rate < asked_hz_ && percent < 0.7 * *max_percent_) {
    rate = std::min(asked_hz_, rate * 1.25);
  }
  return std::abs(rate - rate_hz) > 0.5 ? std::optional(rate) : std::nullopt;
}

Nanoseconds ShortestWait::judge(Nanoseconds now, Nanoseconds taken) {
  const Nanoseconds window = now - std::exchange(start_, now);
  const Nanoseconds in_window = taken - std::exchange(taken_, taken);
  if (!max_percent_ || window <= 0 || window == now) return shortest_;
  const double share = 100.0 * static_cast<double>(in_window) / static_cast<double>(window) / *max_percent_;
  // Told half as often they take half as much at best: a quarter is room for them.
  if (share > 0.5) shortest_ = std::min(2 * shortest_, kMost);
  if (share < 0.2) shortest_ = std::max(shortest_ / 2, kLeast);
  return shortest_;
}

}  // namespace phlox::sampler
