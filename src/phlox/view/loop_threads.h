// The threads of event loops that do not say theirs: uvloop before CPython 3.14, and trio. Pure.
#pragma once

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"

namespace phlox::view {

// Fills EventLoop::thread where samples prove it: only one thread of the process ran a loop of this kind, and
// the tasks are of one such loop. Before inherited frames are hidden or the samples changed otherwise.
void name_loop_threads(profile::TaskRows& tasks, const profile::Profile& profile);

}  // namespace phlox::view
