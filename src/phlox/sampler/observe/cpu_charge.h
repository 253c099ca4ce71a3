// How much CPU time goes to a sample that finds a thread running. The kernel says exactly how much the thread
// has used since the last such sample. But if it slept in between, it used that at several places, and most
// of them were too short for a sample. With all of that time, the first sample in a long function would also
// get the time of short ones before it. A sample stands for one interval, so it gets that, and the rest is
// kept for later samples. Pure.
#pragma once

#include <algorithm>

#include "phlox/base/clock.h"

namespace phlox::sampler {

class CpuCharge {
 public:
  // `ran`, `slept`: since the last record of the thread, whichever it is.
  void add(Nanoseconds ran, bool slept) {
    ran_ += ran;
    slept_ = slept_ || slept;
  }
  // At a sample that finds it running. `carried`: all that is not charged to a sample yet, with what was
  // added. `interval`: between two samples; 0: not known, and nothing is kept.
  Nanoseconds charge(Nanoseconds carried, Nanoseconds interval) {
    const Nanoseconds own = slept_ ? std::min(carried, interval) : std::min(carried, ran_);
    ran_ = 0;
    slept_ = false;
    if (interval <= 0) return carried;
    // More is left over only if there are fewer samples than there should be.
    return own + std::max<Nanoseconds>(carried - own - kMostKept * interval, 0) / 4;
  }

 private:
  static constexpr Nanoseconds kMostKept = 8;  // intervals

  Nanoseconds ran_ = 0;
  bool slept_ = false;
};

}  // namespace phlox::sampler
