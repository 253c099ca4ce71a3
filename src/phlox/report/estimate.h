// Turns an Analysis into the numbers that people see; shared by report and diff.
#pragma once

#include <string>
#include <vector>

#include "phlox/report/analysis.h"
#include "phlox/report/report.h"

namespace phlox::report {

// The share with its 99 % interval: the error of sampling in this recording.
Estimate estimate_of(const Share& share, const Analysis& analysis);

// 0 of nothing.
inline double time_share(Nanoseconds of, Nanoseconds whole) {
  return whole > 0 ? double(of) / double(whole) : 0;
}

// "4.10 to 63.2 %": the 99 % interval, limited to possible shares.
std::string interval_words(const Estimate& estimate);

// The lower end of Wilson's 99 % interval of a share found in this many independent samples.
double least_share(double share, double samples);

// From the first to the last moment of the samples that pass the filter.
Nanoseconds elapsed_of(const profile::Profile& profile, const view::SampleFilter& filter);
// Of these samples of the profile.
Nanoseconds elapsed_of(const std::vector<profile::Sample>& samples, const profile::Profile& profile,
                       const view::SampleFilter& filter);

}  // namespace phlox::report
