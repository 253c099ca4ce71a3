// Endpoints whose handlers wait for tasks that they start, with create_task(), gather() or a TaskGroup, or
// for jobs that they give to the threads of a pool. The stacks of these do not contain the handler, but the
// censuses show which tasks wait for the tasks of each coroutine, and for the jobs with each function. They
// also show handlers that a framework runs as tasks of their own (TaskDispatcher). Kept as facts of the
// profile (meta), so that Endpoints needs no tasks. Pure.
#pragma once

#include <cstdint>
#include <map>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/view/loop_stacks.h"

namespace phlox::view {

// The tasks of a coroutine, or the jobs with a function, belong to an endpoint if censuses found this often
// that the endpoint waited for one, it waited for this share of all, and no other endpoint for any.
inline constexpr uint64_t kLeastSeen = 5;
inline constexpr double kLeastShare = 0.9;
constexpr bool is_seen_enough(uint64_t seen, uint64_t all) {
  return seen >= kLeastSeen && static_cast<double>(seen) >= kLeastShare * static_cast<double>(all);
}

// `tasks`: of the same recording.
void learn_task_endpoints(profile::Profile& profile, const profile::TaskRows& tasks);

// What the outermost function of a task or a job is.
enum class Outermost : uint8_t { coroutine, job };
// Whether what this function calls may be one: it is of an event loop, or of a thread pool.
bool runs(Outermost kind, const profile::Frame& frame);

struct TaskEndpoint {
  profile::FrameId handler;  // one of the function's; none: handlers of several endpoints wait for it
  std::string_view framework = {};
  Outermost kind = Outermost::coroutine;
  bool is_handler = false;  // it is the handler itself
};
// By the outermost function. None is both a coroutine and a job.
std::map<Function, TaskEndpoint> task_endpoints(const profile::Profile& profile);

}  // namespace phlox::view
