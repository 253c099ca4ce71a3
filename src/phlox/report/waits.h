// Where threads wait: for a system call, for the GIL, for a CPU; by the innermost function and line.
#pragma once

#include <optional>
#include <vector>

#include "phlox/report/report.h"

namespace phlox::report {

// The longest first. `thread`: of that one only.
std::vector<WaitRow> find_waits(const profile::Profile& profile, const profile::Choices& choices,
                                std::optional<profile::ThreadId> thread, size_t limit);

}  // namespace phlox::report
