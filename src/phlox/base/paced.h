// When something that costs time may be done again, so that no more than its share of what passes goes into
// it.
#pragma once

#include <algorithm>

#include "phlox/base/clock.h"

namespace phlox {

// 0.2 % of what passes; `least`: to wait at least.
inline Nanoseconds again_after(Nanoseconds start, Nanoseconds end, Nanoseconds least) {
  constexpr Nanoseconds kRest = 500;
  return end + std::max(least, (end - start) * kRest);
}

}  // namespace phlox
