// Limits below which facts are not reported, and which several kinds of findings share.
#pragma once

#include <algorithm>

#include "phlox/report/estimate.h"
#include "phlox/report/report.h"

namespace phlox::report {

constexpr uint64_t kFewSamples = 10;  // fewer prove nothing
// Part of a recording: the largest part of almost nothing is not worth reporting.
constexpr double kWorthSaying = 0.01;

// The weight of a finding about one thread is its part of the recording, not of the thread.
inline double part_of_recording(const Report& report, Nanoseconds time) {
  return time_share(time, std::max<Nanoseconds>(report.elapsed, 1));
}

// A thread that was seen for less is not reported.
inline bool is_short(const Report& report, const ThreadRow& thread) {
  constexpr double kThreadShare = 0.01;
  return part_of_recording(report, thread.wall) < kThreadShare;
}

}  // namespace phlox::report
