// With native frames, samples show little of how long a thread ran or slept. Every event finds a thread
// running that does both in turn for 0.1 ms each, and so does every stop that began while it slept and had to
// be repeated. The kernel's account (schedstat) is exact. Divides the time between two samples of a thread by
// it: the time running or waiting for a CPU, and the time asleep. The part with the other state gets the
// stack of the last sample that found the thread in that state. Pure.
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

  // `wall`: since the last sample; in `ran` of it the thread ran or was ready to. `asleep`: the state of this
  // sample. `other_known`: an earlier sample found the other state.
  Parts split(Nanoseconds wall, Nanoseconds ran, bool asleep, bool other_known) {
    if (!other_known || wall <= 0) return {0, wall};
    ran = std::clamp<Nanoseconds>(ran, 0, wall);
    // Minimum slice: less than an eighth is postponed, and not lost.
    const Nanoseconds min_slice = wall / 8;
    Nanoseconds own = std::clamp(asleep ? wall - ran - owed_ : ran + owed_, min_slice, wall);
    if (wall - own < min_slice) own = wall;
    owed_ += ran - (asleep ? wall - own : own);
    return {wall - own, own};
  }

 private:
  Nanoseconds owed_ = 0;  // to running; below zero: to sleep
};

// Without native frames: the same account, of three states. So a table of threads says "running" by the CPU
// account, and not by the samples. The state of the sample gets the rest of `wall`; the other parts come
// before it. Pure.
class StateSplit {
 public:
  struct Parts {
    Nanoseconds asleep = 0, queued = 0, ran = 0;
    // Its waiting for a CPU that was before this window: the kernel counts it when the thread runs again.
    Nanoseconds late = 0;
  };

  // `ran`: on a CPU, without `queued`, its waiting for one. `was_awake`: it was not blocked in the last
  // sample. `ran_here`: false if the sample found it waiting for a CPU and it ran elsewhere. Then `ran` is
  // reported as waiting, and the next sample that finds it running reports as much of its waiting as running.
  Parts split(Nanoseconds wall, Nanoseconds ran, Nanoseconds queued, profile::CpuState found,
              bool was_awake = false, bool ran_here = true) {
    ran = std::clamp<Nanoseconds>(ran, 0, wall);
    Parts parts;
    // It cannot have gone to sleep without running. The kernel counts that wait when the thread runs again.
    if (found == profile::CpuState::running && was_awake && ran < kSecond / 20'000) {
      owed_queued_ += std::max<Nanoseconds>(queued, 0) - wall;
      parts.queued = wall;
      return parts;
    }
    // A part of a wait that is now over was emitted already.
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
        owed_queued_ -= take_back(queued);
        parts.queued = due(owed_queued_, queued, wall);
        parts.asleep = due(owed_asleep_, wall - ran - queued, wall - parts.queued);
        break;
      default:
        // The kernel shows how long it has waited by now only when it runs again: the rest is not known to be
        // sleep.
        if (ran_here || owed_ran_ + ran > kMostOwed) {
          parts.ran = due(owed_ran_, ran, wall);
        } else {
          owed_ran_ += ran;
        }
    }
    return parts;
  }

 private:
  // More than this is not kept for a sample that may never come.
  static constexpr Nanoseconds kMostOwed = kSecond / 4;

  Nanoseconds take_back(Nanoseconds most) {
    const Nanoseconds taken = std::clamp<Nanoseconds>(owed_ran_, 0, most);
    owed_ran_ -= taken;
    return taken;
  }

  // Minimum slice: less than an eighth, or than a quarter of a millisecond, is postponed, and not lost.
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
