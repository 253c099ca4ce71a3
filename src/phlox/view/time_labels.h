// Named spans of a recording's time: a test, a request. A view may show the time of some only, or put the
// label at the root of every stack. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/view/view.h"

namespace phlox::view {

// Applies `choices.label_regex` and `choices.by.label` to a recording, before anything else. Intervals are
// cut where labels begin and end (wall time exactly; CPU time and samples in the same proportion), those
// outside the selected labels are removed, and with by.label each stack begins with its label. Where labels
// overlap, the one that began last counts. usage: there are none, none matches, or the expression is invalid.
Result<void> show_time_labels(profile::Profile& profile, const Choices& choices);

// A line is "START END TEXT", divided by tabs: nanoseconds of CLOCK_MONOTONIC. input: another kind of line,
// with its number.
Result<std::vector<profile::TimeLabel>> parse_time_labels(std::string_view text);

}  // namespace phlox::view
