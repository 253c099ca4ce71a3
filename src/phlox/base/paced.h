// When to repeat something that costs time, so that it takes no more than its share.
#pragma once

#include <algorithm>

#include "phlox/base/clock.h"

namespace phlox {

// 0.2 % of the time; `least`: the shortest wait.
inline Nanoseconds again_after(Nanoseconds start, Nanoseconds end, Nanoseconds least) {
  constexpr Nanoseconds kRest = 500;
  return end + std::max(least, (end - start) * kRest);
}

}  // namespace phlox
