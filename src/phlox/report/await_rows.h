// What tasks of event loops awaited: rows, tables and JSON. Sampled, and so it says how often. Pure.
#pragma once

#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/report/json_text.h"
#include "phlox/report/report.h"
#include "phlox/report/table.h"
#include "phlox/view/sample_filter.h"

namespace phlox::report {

// `filter`: must judge.
std::vector<LoopAwaitRow> await_rows(const profile::Profile& profile, const view::SampleFilter& filter,
                                     const profile::TaskRows& tasks, size_t limit);
// For each loop, the first ones: what its tasks await, and what ran while they were ready to run.
std::vector<Table> await_tables(const Report& report);
void write_awaits(JsonText& json, const std::vector<LoopAwaitRow>& rows);

}  // namespace phlox::report
