// Stretches of a recording's time that somebody gave a name: which test ran, which request was served. A view
// may show the time of some only, or put the label at the root of every stack. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/view.h"

namespace phlox::profile {

// Makes of a recording what `choices.label_regex` and `choices.by.label` ask for, before anything else is
// made of it: stretches are cut where labels begin and end (wall time exactly; CPU time and looks in the same
// proportion), those outside of what was asked for go, and with by.label each stack begins with its label.
// Where labels overlap, the one that began last is the one. usage: there are none, none
// matches, or the expression is off.
Result<void> show_time_labels(Profile& profile, const Choices& choices);

// "START END TEXT" a line, divided by tabs: nanoseconds of CLOCK_MONOTONIC. input: a line that is not, with
// its number.
Result<std::vector<TimeLabel>> parse_time_labels(std::string_view text);

}  // namespace phlox::profile
