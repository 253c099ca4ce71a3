// What tasks of event loops awaited: rows, tables and JSON. Sampled, and so it says how often. Pure.
#pragma once

#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/report/json_text.h"
#include "phlox/report/report.h"
#include "phlox/report/table.h"

namespace phlox::report {

std::vector<LoopAwaitRow> await_rows(const profile::Profile& profile, const profile::TaskRows& tasks,
                                     size_t limit);
// One for each loop, the first ones.
std::vector<Table> await_tables(const Report& report);
void write_awaits(JsonText& json, const std::vector<LoopAwaitRow>& rows);

}  // namespace phlox::report
