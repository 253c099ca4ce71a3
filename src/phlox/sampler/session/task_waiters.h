// Counts which tasks wait for the tasks of each group (task_groups.h) to end, and for what threads of a pool
// run, census after census. Pure: gets what was read, and passes rows to a TaskSink. Called by the recorder's
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "phlox/profile/task_time.h"
#include "phlox/python/async_tasks.h"
#include "phlox/sampler/session/counted_rows.h"

namespace phlox::sampler {

// By task: the first one with a stack that waits for it. `stacks`: of each task.
using FirstWaiters = std::vector<std::optional<uint32_t>>;
FirstWaiters first_waiters(const python::AsyncTasks& tasks, const std::vector<profile::TaskStackId>& stacks);

// The frames of a task, beneath them those of the task that waits for it, and so on. Outermost first.
std::vector<python::TaskFrame> frames_with_waiters(const python::AsyncTasks& tasks,
                                                   const FirstWaiters& waiters, uint32_t task);

// Beyond CountedRows::kMost, waiters count as not known.
class TaskWaiters {
 public:
  TaskWaiters(profile::TaskSink& sink, uint32_t& ids) : sink_(sink), rows_(ids) {}

  // `groups`, `stacks`: of each task.
  void add(const FirstWaiters& waiters, const std::vector<profile::TaskGroupId>& groups,
           const std::vector<profile::TaskStackId>& stacks);
  // Reports the rows that have grown.
  void put();

 private:
  profile::TaskSink& sink_;
  CountedRows<std::pair<profile::TaskGroupId, profile::TaskStackId>, profile::TaskWaiterId,
              profile::TaskWaiter>
      rows_;
};

class JobWaiters {
 public:
  JobWaiters(profile::ProcessId process, profile::TaskSink& sink, uint32_t& ids)
      : process_(process), sink_(sink), rows_(ids) {}

  // The next calls are of another census.
  void begin() { last_.clear(); }
  // A thread runs this function; `stack`: JobWaiter::stack.
  void add(profile::FrameId function, profile::TaskStackId stack);
  // Nothing has changed since the last census.
  void add_again();
  void put();

 private:
  using Key = std::pair<profile::FrameId, profile::TaskStackId>;
  void count(const Key& key);

  profile::ProcessId process_;
  profile::TaskSink& sink_;
  CountedRows<Key, profile::JobWaiterId, profile::JobWaiter> rows_;
  std::vector<Key> last_;  // of the last census
};

}  // namespace phlox::sampler
