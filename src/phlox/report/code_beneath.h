// For recordings without native frames: the library or extension module that runs while a Python function, or
// a line, waits for its return. The clock's samples know it (profile::Sample::code_file); --native has its
// functions. Called by make_report. Pure.
#pragma once

#include "phlox/profile/profile.h"
#include "phlox/report/analysis.h"
#include "phlox/view/sample_filter.h"

namespace phlox::report {

// Sets Entry::code of functions and lines if it is proved that most samples found one and the same library,
// with a chance of a hundredth to be wrong.
void put_code_beneath(const profile::Profile& profile, const view::SampleFilter& filter, Analysis& analysis);

// Whether this many of the samples prove more than half.
bool are_most(uint64_t some, uint64_t samples);

}  // namespace phlox::report
