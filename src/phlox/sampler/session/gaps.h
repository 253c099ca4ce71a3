// The times of a recording in which no program is recorded: how long they were, and whether another program
// will come. Pure. Used by the recorder's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "phlox/base/clock.h"
#include "phlox/sampler/session/finder.h"
#include "phlox/sampler/session/program.h"

namespace phlox::sampler {

class Gaps {
 public:
  // No program is recorded now. `checks`: Finder::State::checks.
  void begin(Nanoseconds now, uint64_t checks) {
    if (!since_) since_ = now, checks_then_ = checks;
  }
  void end(Nanoseconds now) {
    if (since_) ended_ += now - *since_;
    since_.reset();
    is_long_ = false;
  }
  Nanoseconds total(Nanoseconds now) const { return ended_ + (since_ ? now - *since_ : 0); }

  // True once in a gap: as soon as the user would wonder.
  bool becomes_long(Nanoseconds now) {
    return since_ && now - *since_ > kLongWait && !std::exchange(is_long_, true);
  }
  // Whether none of the tree will come. The process that ended last may have left others behind: a whole
  // check that began after its end shows that.
  bool is_last(Nanoseconds now, const Finder::State& state) const {
    if (!since_ || state.checks < checks_then_ + 2) return false;
    return !state.any_left || now - *since_ > kOrphansPatience;
  }

 private:
  std::optional<Nanoseconds> since_;  // none: a program is recorded
  uint64_t checks_then_ = 0;
  Nanoseconds ended_ = 0;  // of those that ended
  bool is_long_ = false;
};

}  // namespace phlox::sampler
