// Turns the numbers of a report into sentences: the facts that a reader should see first. docs/report.md
// lists the kinds.
#pragma once

#include <vector>

#include "phlox/report/analysis.h"
#include "phlox/report/report.h"
#include "phlox/view/gil_holders.h"

namespace phlox::report {

// `report` is complete except for its findings. `tasks`: null: not known.
std::vector<Finding> find_findings(const profile::Profile& profile, const view::Choices& choices,
                                   const Analysis& analysis, const Report& report,
                                   const std::vector<view::GilWaiter>& gil_waiters,
                                   const profile::TaskRows* tasks);

}  // namespace phlox::report
