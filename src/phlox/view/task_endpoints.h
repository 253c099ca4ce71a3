// Endpoints whose handlers start tasks, with create_task(), gather() or a TaskGroup, and wait for them. The
// stack of such a task does not contain the handler, but the censuses show which tasks wait for the tasks of
// each coroutine. Kept as facts of the profile (meta), so that Endpoints needs no tasks. Pure.
#pragma once

#include <cstdint>
#include <map>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/view/loop_stacks.h"

namespace phlox::view {

// The tasks of a coroutine belong to an endpoint if censuses found them this often, the endpoint waited for
// this share of them, and no other one for any.
inline constexpr uint64_t kLeastSeen = 5;
inline constexpr double kLeastShare = 0.9;

// `tasks`: of the same recording.
void learn_task_endpoints(profile::Profile& profile, const profile::TaskRows& tasks);

struct TaskEndpoint {
  profile::FrameId handler;  // one of the function's
  std::string_view framework;
};
// By the outermost coroutine of the tasks.
std::map<Function, TaskEndpoint> task_endpoints(const profile::Profile& profile);

// Whether what the function calls may be the outermost coroutine of a task.
bool runs_tasks(const profile::Frame& frame);

}  // namespace phlox::view
