// Which causes belong to one incident, when its time is over, and whether there were too many. Pure: the
// caller has the clock (CLOCK_MONOTONIC). One thread at a time calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/incidents/condition.h"

namespace phlox::incidents {

// That a condition became true.
struct Cause {
  Kind kind = Kind::stall;
  Nanoseconds time = 0;  // when it began
  std::string words;     // "an event loop in thread ...: stall of 405 ms in ..."
  std::string in_short;  // "stall of 405 ms"
};

struct Incident {
  Nanoseconds from = 0, to = 0;
  std::vector<Cause> causes;  // at least one; the one that began it first
  size_t more_causes = 0;     // not listed
};

class Plan {
 public:
  static constexpr size_t kMostCauses = 20;

  // `most_an_hour`: incidents.
  Plan(Nanoseconds before, Nanoseconds after, size_t most_an_hour)
      : before_(before), after_(after), most_an_hour_(most_an_hour) {}

  enum class Answer {
    begins,       // a new incident
    joins,        // one in whose time it happened
    joins_first,  // the same, and is the first of its kind there
    too_many      // dropped, and counted
  };
  Answer note(Cause cause, Nanoseconds now);

  // Removes and returns the first, if its time is over.
  std::optional<Incident> take_due(Nanoseconds now);
  // When that will be; none: there is none.
  std::optional<Nanoseconds> due() const;
  // At the end of the recording: one after another.
  std::optional<Incident> take_rest();
  // How many were dropped in all.
  uint64_t dropped() const { return dropped_; }

 private:
  Nanoseconds before_, after_;
  size_t most_an_hour_;
  std::deque<Nanoseconds> begun_;  // in the last hour
  std::deque<Incident> open_;      // in order; nearly always one
  uint64_t dropped_ = 0;
};

}  // namespace phlox::incidents
