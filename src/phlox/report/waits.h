// Where threads wait: for a system call, for the GIL, for a CPU; by the innermost Python function
// and line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "phlox/report/report.h"
#include "phlox/view/ended_waits.h"

namespace phlox::report {

// The longest first. `thread`: only that thread.
std::vector<WaitRow> find_waits(const profile::Profile& profile, const view::Choices& choices,
                                std::optional<profile::ThreadId> thread, size_t limit);

// The text for a native function that Python calls; without a share.
NativeBeneath native_beneath(const profile::Profile& profile, profile::FrameId frame);

// The wakers, if the recording knows them; the longest first.
std::vector<EndedWaitRow> find_ended_waits(const profile::Profile& profile,
                                           const std::vector<view::EndedWaits>& ended,
                                           const profile::WaitTargetGroups& wait_targets, size_t limit);

}  // namespace phlox::report
