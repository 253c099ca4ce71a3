// How long the thread that names frames while a recording goes on rests between two batches. The first frames
// of a file are wanted soon. Later, only addresses that were not seen before come, in ever smaller numbers,
// and each batch reads the symbols of the file again. Pure.
#pragma once

#include <algorithm>

#include "phlox/base/clock.h"

namespace phlox::naming {

class NamingPace {
 public:
  struct Limits {
    // After a batch with a new file; doubled after each other one.
    Nanoseconds shortest = kSecond, longest = 60 * kSecond;
    // CPU time that may be used at once, and how much of the time passes for each nanosecond of it.
    Nanoseconds at_once = 10 * kSecond, time_for_each = 50;
  };
  explicit NamingPace(const Limits& limits) : limits_(limits), left_(limits.at_once) {}

  // `taken`: CPU time of the batch. `passed`: time since the last batch.
  Nanoseconds rest_after(Nanoseconds taken, Nanoseconds passed, bool has_new_file) {
    left_ = std::min(limits_.at_once, left_ + passed / limits_.time_for_each) - taken;
    pause_ = has_new_file || pause_ == 0 ? limits_.shortest : std::min(2 * pause_, limits_.longest);
    return std::max(pause_, -left_ * limits_.time_for_each);
  }
  // Names are wanted now.
  void hurry() { pause_ = 0; }

 private:
  Limits limits_;
  Nanoseconds left_, pause_ = 0;
};

}  // namespace phlox::naming
