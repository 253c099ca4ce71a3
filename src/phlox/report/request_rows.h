// The slowest single requests of event-loop servers, and where the time of each went: rows, table, JSON.
// Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "phlox/report/json_text.h"
#include "phlox/report/report.h"
#include "phlox/report/table.h"

namespace phlox::report {

// The longest first. The choices select them by process, time range and endpoint: those that ran in the
// range.
std::vector<RequestRow> request_rows(const profile::Profile& profile, const ReportOptions& options);

// No rows: no request is known.
Table request_table(const Report& report);
void write_requests(JsonText& json, const Report& report);

}  // namespace phlox::report
