// Which of the events that a recording sampled (sampled_events.h) is shown, and the weights that its samples
// have. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/view/choices.h"

namespace phlox::view {

// From now on the profile's samples are those of this event; "": of the first one; if that has no samples, of
// its decrease, or of the first one that has some. "cycles" also means "cycles:u" if there is no other.
// ErrorKind::usage: no event has that name; the hint lists the events.
Result<void> show_event(profile::Profile& profile, std::string_view name);

// By number - 1: events that have samples among those that are not shown.
std::vector<bool> sampled_but_not_shown(const profile::Profile& profile);

// The event that is shown. Without a name: the recording has none.
profile::SampledEvent shown_event(const profile::Profile& profile);

// The weight of its samples by their counts.
Weight weight_of(profile::Unit unit);
// The unit of a weight for machines: "ns", "samples", "count", "bytes".
std::string_view unit_key(Weight weight);

// The weight in words: "wall time", "CPU time of cpu-clock" (if there are several events), "samples",
// "cache-misses".
std::string weight_title(const profile::Profile& profile, Weight weight);

}  // namespace phlox::view
