// The slowest single requests of event-loop servers, and where the time of each went: table and JSON. Pure.
#pragma once

#include "phlox/report/json_text.h"
#include "phlox/report/report.h"
#include "phlox/report/table.h"

namespace phlox::report {

// No rows: no request is known.
Table request_table(const Report& report);
void write_requests(JsonText& json, const Report& report);

}  // namespace phlox::report
