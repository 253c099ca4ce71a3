// Findings about tasks that never end, by the censuses of the whole recording. Pure.
#pragma once

#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/report/report.h"

namespace phlox::report {

// Tasks that nothing can wake; tasks that wait for a lock that none of them gets; tasks whose number only
// grows.
std::vector<Finding> task_findings(const profile::Profile& profile, const profile::TaskRows& tasks);

}  // namespace phlox::report
