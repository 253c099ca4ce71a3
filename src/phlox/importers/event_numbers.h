// Numbers of the events that a foreign recording sampled, in the order in which they are met, and what they
// counted, kept to sums that nobody need fear to add up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "phlox/profile/sampled_events.h"

namespace phlox::importers {

class EventNumbers {
 public:
  explicit EventNumbers(profile::Sink& sink) : sink_(sink) {}

  // The first time it is told to the sink. 0: it has no name, or there are too many.
  uint16_t of(const profile::SampledEvent& event) {
    if (event.name.empty()) return 0;
    const auto known = numbers_.find(event.name);
    if (known != numbers_.end()) return known->second;
    if (numbers_.size() >= profile::kMostSampledEvents) return 0;
    const auto number = static_cast<uint16_t>(numbers_.size() + 1);
    numbers_.emplace(event.name, number);
    profile::put_sampled_event(sink_, number, event);
    return number;
  }

  // `value`, or less where all of them come to more than a reader of recordings believes.
  int64_t take(uint64_t value) {
    const uint64_t taken = std::min(value, left_);
    left_ -= taken;
    return static_cast<int64_t>(taken);
  }

 private:
  profile::Sink& sink_;
  std::map<std::string, uint16_t, std::less<>> numbers_;
  uint64_t left_ = std::numeric_limits<int64_t>::max() / 4;
};

}  // namespace phlox::importers
