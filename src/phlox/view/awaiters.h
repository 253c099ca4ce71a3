// The coroutines that await a task, in the stacks of that task. A task that runs is called by the event loop:
// its stack does not say which coroutine awaits it. The censuses do. The frames that all awaiters of a
// coroutine's tasks share are put between the loop and the coroutine, with a marker after them. Pure.
#pragma once

#include <string_view>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"

namespace phlox::view {

// The marker's name.
inline constexpr std::string_view kAwaits = "(awaits)";
bool is_awaits_marker(const profile::Frame& frame);

// `tasks`: of the same recording. After learn_task_endpoints() and before anything of prepared.h.
void show_awaiters(profile::Profile& profile, const profile::TaskRows& tasks);

}  // namespace phlox::view
