// Turns the numbers of a report into sentences: the facts that a reader should see first. docs/report.md
// lists the kinds.
#pragma once

#include <vector>

#include "phlox/profile/gil_holders.h"
#include "phlox/report/analysis.h"
#include "phlox/report/report.h"

namespace phlox::report {

// `report` is complete except for its findings. `tasks`: null: not known.
std::vector<Finding> find_findings(const profile::Profile& profile, const profile::Choices& choices,
                                   const Analysis& analysis, const Report& report,
                                   const std::vector<profile::GilWaiter>& gil_waiters,
                                   const profile::TaskRows* tasks);

}  // namespace phlox::report
