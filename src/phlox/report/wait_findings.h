// Findings about waiting: for the GIL, and of a program that mostly waits.
#pragma once

#include <optional>
#include <vector>

#include "phlox/report/analysis.h"
#include "phlox/report/report.h"
#include "phlox/view/gil_holders.h"

namespace phlox::report {

// The three threads that wait longest for the GIL. A thread that waits for the same function of the same
// thread as an earlier one is added to that finding.
std::vector<Finding> gil_findings(const profile::Profile& profile, const Analysis& analysis,
                                  const Report& report, const std::vector<view::GilWaiter>& waiters);

// A program that waits more than it works, or has nothing to do.
std::optional<Finding> waiting_finding(const profile::Profile& profile, const view::Choices& choices,
                                       const Analysis& analysis, const Report& report);

}  // namespace phlox::report
