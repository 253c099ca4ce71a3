// Prepares a recording to be shown, once: its stacks get what the censuses of tasks show (task_endpoints.h,
// awaiters.h), processes get their names, inherited frames are marked or left out (forks.h), native frames
// become what a reader knows (native_frames.h), a chosen trace is left alone (chosen_trace.h), and labels are
// put into the stacks (time_labels.h), in this order. Pure.
#pragma once

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/view/choices.h"
#include "phlox/view/forks.h"

namespace phlox::view {

// `tasks`: of the same recording.
void prepare_tasks(profile::Profile& profile, const profile::TaskRows& tasks, const Choices& choices);

// Both of the following.
Result<void> prepare_view(profile::Profile& profile, const Choices& choices, Inherited inherited);

// What each recording needs before several become one (together.h).
void prepare_processes(profile::Profile& profile, Inherited inherited);
// The rest. Fails if the choices are about labels or a trace, and there are none.
Result<void> prepare_frames(profile::Profile& profile, const Choices& choices);

}  // namespace phlox::view
