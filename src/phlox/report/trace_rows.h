// Distributed traces: table and JSON of the longest ones. Pure.
#pragma once

#include "phlox/report/json_text.h"
#include "phlox/report/report.h"
#include "phlox/report/table.h"

namespace phlox::report {

// Of a report with traces.
Table trace_table(const Report& report);
void write_traces(JsonText& json, const Report& report);

}  // namespace phlox::report
