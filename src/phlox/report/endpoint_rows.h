// The time of requests by endpoint: rows, table, JSON, and the finding that names the largest. Pure.
#pragma once

#include <optional>
#include <vector>

#include "phlox/report/json_text.h"
#include "phlox/report/report.h"
#include "phlox/report/table.h"

namespace phlox::report {

// All of them, in the order of Report::endpoints. The tasks' time is that of the whole recording, whatever
// the choices.
std::vector<EndpointRow> endpoint_rows(const profile::Profile& profile, const ReportOptions& options);
// Keeps so many endpoints, and the rows of no endpoint. Returns how many endpoints there were.
size_t limit_endpoints(std::vector<EndpointRow>& rows, size_t limit);

Table endpoint_table(const Report& report);
void write_endpoints(JsonText& json, const Report& report);
// None: there is no endpoint, or hardly any time in them.
std::optional<Finding> endpoint_finding(const Report& report);

}  // namespace phlox::report
