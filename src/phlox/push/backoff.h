// How long to wait before the next attempt: longer after each failure, with a random part, so that the agents
// of many hosts do not all return when their server does. Pure.
#pragma once

#include <algorithm>

#include "phlox/base/clock.h"

namespace phlox::push {

class Backoff {
 public:
  static constexpr Nanoseconds kFirst = kSecond, kLongest = 60 * kSecond;
  // The longest pause that a server may ask for.
  static constexpr Nanoseconds kMostAsked = 3600 * kSecond;

  // `random`: from 0 to 1. Between half of the delay and all of it.
  Nanoseconds next(double random) {
    const Nanoseconds delay = delay_;
    delay_ = std::min(2 * delay_, kLongest);
    return delay / 2 +
           static_cast<Nanoseconds>(static_cast<double>(delay / 2) * std::clamp(random, 0.0, 1.0));
  }
  void reset() { delay_ = kFirst; }

 private:
  Nanoseconds delay_ = kFirst;
};

}  // namespace phlox::push
