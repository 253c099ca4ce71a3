// With native frames, looks say little of how long a thread ran or slept: one that does either for 0.1 ms
// in turn is found running by every event, and, where it is stopped for a look, by each that began while
// it slept and had to be made again. The kernel's account of it does (schedstat). Splits the time between
// two looks at a thread by that: what it ran or waited for a CPU, and what it slept. What belongs to the
// kind it was not found in goes to the stack that it was last found in that way with. Pure.
#pragma once

#include <algorithm>

#include "phlox/base/clock.h"
#include "phlox/profile/model.h"

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

// Without native frames: the same account, of three states. A table of threads then says "running" of what
// the CPU account says, and not of whatever samples found. What a thread was found in is what is left of
// `wall`; the other parts come before it. Pure.
class StateSplit {
 public:
  struct Parts {
    Nanoseconds asleep = 0, queued = 0, ran = 0;
    // Its waiting for a CPU that was before this window: the kernel counts it when the thread runs again.
    Nanoseconds late = 0;
  };

  // `ran`: on a CPU, without `queued`, its waiting for one. `was_awake`: it was not blocked at the look
  // before.
  Parts split(Nanoseconds wall, Nanoseconds ran, Nanoseconds queued, profile::CpuState found,
              bool was_awake = false) {
    ran = std::clamp<Nanoseconds>(ran, 0, wall);
    Parts parts;
    // It cannot have gone to sleep without running. The kernel counts that wait when the thread runs again.
    if (found == profile::CpuState::running && was_awake && ran < kSecond / 20'000) {
      owed_queued_ += std::max<Nanoseconds>(queued, 0) - wall;
      parts.queued = wall;
      return parts;
    }
    // Of a wait that is over now some was put already.
    const Nanoseconds put_before =
        std::clamp<Nanoseconds>(-owed_queued_, 0, std::max<Nanoseconds>(queued, 0));
    owed_queued_ += put_before;
    parts.late = std::max<Nanoseconds>(queued - put_before - (wall - ran), 0);
    queued = std::clamp<Nanoseconds>(queued - put_before, 0, wall - ran);
    switch (found) {
      case profile::CpuState::blocked:
        parts.ran = due(owed_ran_, ran, wall);
        parts.queued = due(owed_queued_, queued, wall - parts.ran);
        break;
      case profile::CpuState::running:
        parts.queued = due(owed_queued_, queued, wall);
        parts.asleep = due(owed_asleep_, wall - ran - queued, wall - parts.queued);
        break;
      default:
        // How long it has waited by now the kernel tells when it runs again: the rest is not known to be
        // sleep.
        parts.ran = due(owed_ran_, ran, wall);
    }
    return parts;
  }

 private:
  // No crumbs: what is less than an eighth, or a quarter of a millisecond, is put off, and not forgotten.
  static Nanoseconds due(Nanoseconds& owed, Nanoseconds more, Nanoseconds window) {
    owed += more;
    if (owed < std::min(kSecond / 4000, window / 8)) return 0;
    const Nanoseconds put = std::clamp<Nanoseconds>(owed, 0, window);
    owed -= put;
    return put;
  }

  Nanoseconds owed_asleep_ = 0, owed_queued_ = 0, owed_ran_ = 0;
};

}  // namespace phlox::sampler
