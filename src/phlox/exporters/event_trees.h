// The counts of events that are not shown: for formats with room for more than one number.
#pragma once

#include <vector>

#include "phlox/profile/sampled_events.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

struct EventTree {
  profile::SampledEvent event;
  view::CallTree tree;
};

// In the order of the recording, without events whose samples all fail the choices.
Result<std::vector<EventTree>> other_events(const profile::Profile& profile, const view::Choices& choices);

}  // namespace phlox::exporters
