// What report and diff share of turning an Analysis into what people are shown.
#pragma once

#include "phlox/report/analysis.h"
#include "phlox/report/report.h"

namespace phlox::report {

// The share with its 99 % interval: what sampling leaves open about this recording.
Estimate estimate_of(const Share& share, const Analysis& analysis);

// 0 of nothing.
inline double time_share(Nanoseconds of, Nanoseconds whole) {
  return whole > 0 ? double(of) / double(whole) : 0;
}

// The lower end of Wilson's 99 % interval of a share that was found in so many independent samples.
double least_share(double share, double samples);

// From the first to the last moment that passes the filter.
Nanoseconds elapsed_of(const profile::Profile& profile, const profile::SampleFilter& filter);

}  // namespace phlox::report
