// The tables of wait targets and of event loops.
#pragma once

#include "phlox/report/report.h"
#include "phlox/report/table.h"

namespace phlox::report {

Table loop_table(const Report& report);
Table wait_table(const Report& report);
Table gil_table(const Report& report);
Table ended_waits_table(const Report& report);
Table stall_table(const Report& report);  // the longest

}  // namespace phlox::report
