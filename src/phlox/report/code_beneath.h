// In recordings without native frames: which library or extension module runs while a Python function, or a
// line, waits for it to return. The clock's looks say it (profile::Sample::code_file); --native has the
// functions in it. Called by make_report. Pure.
#pragma once

#include "phlox/profile/profile.h"
#include "phlox/profile/sample_filter.h"
#include "phlox/report/analysis.h"

namespace phlox::report {

// Fills in Entry::code of functions and lines where it is proved, with a chance of a hundredth to be wrong,
// that most looks found one and the same library.
void put_code_beneath(const profile::Profile& profile, const profile::SampleFilter& filter,
                      Analysis& analysis);

// Whether so many of the looks are more than half, as far as so few can say.
bool are_most(uint64_t some, uint64_t looks);

}  // namespace phlox::report
