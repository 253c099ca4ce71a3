// The table of the longest stalls of event loops.
#pragma once

#include "phlox/report/report.h"
#include "phlox/report/table.h"

namespace phlox::report {

Table stall_table(const Report& report);

}  // namespace phlox::report
