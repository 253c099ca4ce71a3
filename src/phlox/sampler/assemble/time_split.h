// With native frames, looks say little of how long a thread ran or slept: one that does either for 0.1 ms
// in turn is found running by every event, and, where it is stopped for a look, by each that began while
// it slept and had to be made again. The kernel's account of it does (schedstat). Splits the time between
// two looks at a thread by that: what it ran or waited for a CPU, and what it slept. What belongs to the
// kind it was not found in goes to the stack that it was last found in that way with. Pure.
#pragma once

#include <algorithm>

#include "phlox/base/clock.h"

namespace phlox::sampler {

class TimeSplit {
 public:
  struct Parts {
    Nanoseconds other = 0;  // comes first
    Nanoseconds own = 0;
  };

  // `wall`: since the look before; of it, the thread `ran` or would have. `asleep`: found so. `other_known`:
  // it was found the other way before.
  Parts split(Nanoseconds wall, Nanoseconds ran, bool asleep, bool other_known) {
    if (!other_known || wall <= 0) return {0, wall};
    ran = std::clamp<Nanoseconds>(ran, 0, wall);
    // No crumbs: what is less than an eighth is put off, and not forgotten.
    const Nanoseconds crumb = wall / 8;
    Nanoseconds own = std::clamp(asleep ? wall - ran - owed_ : ran + owed_, crumb, wall);
    if (wall - own < crumb) own = wall;
    owed_ += ran - (asleep ? wall - own : own);
    return {wall - own, own};
  }

 private:
  Nanoseconds owed_ = 0;  // to running; below zero: to sleep
};

}  // namespace phlox::sampler
