// Rows of the tables of event loops and of pools.
#pragma once

#include <vector>

#include "phlox/report/report.h"

namespace phlox::report {

// `filter`: must judge.
std::vector<LoopRow> loop_rows(const profile::Profile& profile, const view::SampleFilter& filter,
                               Nanoseconds shortest_stall, const profile::TaskRows* tasks);
std::vector<PoolRow> pool_rows(const profile::Profile& profile, const view::SampleFilter& filter);

}  // namespace phlox::report
