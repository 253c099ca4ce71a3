// Rows of the table of threads that wait for the GIL, and of the threads that held it meanwhile.
#pragma once

#include <vector>

#include "phlox/report/report.h"
#include "phlox/view/gil_holders.h"

namespace phlox::report {

// The longest first. `threads`: all of them, with the time that each was sampled.
std::vector<GilWaitRow> gil_wait_rows(const profile::Profile& profile,
                                      const std::vector<view::GilWaiter>& waiters,
                                      const std::vector<ThreadRow>& threads, size_t limit);

}  // namespace phlox::report
