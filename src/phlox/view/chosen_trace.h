// Shows the time of one trace, or of one of its spans, alone. Pure.
#pragma once

#include <string_view>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/view/choices.h"

namespace phlox::view {

// Applies `choices.trace` to a recording, before labels are put into its stacks. Samples are cut where the
// chosen times begin and end (trace_parts.h), and what is outside of these is removed. usage: the recording
// has no traces, or not that one, or several that begin so.
Result<void> show_trace(profile::Profile& profile, const Choices& choices);

// Whether such an id is that of a span; of 16 digits, it may also be a trace's lower half.
bool is_span(const profile::Profile& profile, std::string_view id);

}  // namespace phlox::view
