// What was sampled of distributed traces (profile::TraceTime): how many there were, and the longest of them,
// over all threads and processes. Times are those of samples: a trace between two samples is not seen. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/view/sample_filter.h"

namespace phlox::view {

struct TraceRow {
  std::array<uint8_t, 16> trace{};
  Nanoseconds first = 0, last = 0;   // seen from, until; since the recording began
  Nanoseconds cpu = 0, waiting = 0;  // of all of its threads, added up
  size_t threads = 0, processes = 0, spans = 0;
  // The function in which its threads were longest: the innermost one that is not a library's, on stacks that
  // have such a one. Empty: no function is known.
  std::string name, full, file;
  int32_t line = 0;
  std::string endpoint;  // endpoint_label() of the one that has most of its time; empty: none is known
};

struct Traces {
  size_t count = 0;
  Nanoseconds time = 0;  // in which threads worked for a trace
  Nanoseconds of = 0;    // of all threads, without waiting for something to do
  std::vector<TraceRow> rows;
};

// The rows: so many, the longest from first to last seen first. `filter` judges; what the choices do not show
// counts too. `tasks`: of the same recording; null: not known.
Traces find_traces(const profile::Profile& profile, const SampleFilter& filter,
                   const profile::TaskRows* tasks, size_t limit);

}  // namespace phlox::view
