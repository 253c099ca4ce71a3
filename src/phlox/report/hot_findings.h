// Findings about the functions and lines that use most of the CPU time.
#pragma once

#include <vector>

#include "phlox/report/analysis.h"
#include "phlox/report/report.h"

namespace phlox::report {

std::vector<Finding> hot_findings(const profile::Profile& profile, const Analysis& analysis,
                                  const Report& report);

}  // namespace phlox::report
