// Counts which tasks wait for the tasks of each group (task_groups.h) to end, census after census. Pure: gets
// what was read, and passes rows to a TaskSink. Called by the recorder's thread.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "phlox/profile/task_time.h"
#include "phlox/python/async_tasks.h"

namespace phlox::sampler {

class TaskWaiters {
 public:
  // Of one program. Further ones count as not known.
  static constexpr size_t kMostWaiters = 10'000;

  // `ids`: the number of rows so far, of all programs.
  TaskWaiters(profile::TaskSink& sink, uint32_t& ids) : sink_(sink), ids_(ids) {}

  // `groups`, `stacks`: of each task.
  void add(const python::AsyncTasks& tasks, const std::vector<profile::TaskGroupId>& groups,
           const std::vector<profile::TaskStackId>& stacks);
  // Reports the rows that have grown.
  void put();

 private:
  struct Row {
    profile::TaskWaiterId id;
    profile::TaskWaiter row;
    bool has_grown = false;
  };
  void count(profile::TaskGroupId group, profile::TaskStackId stack);

  profile::TaskSink& sink_;
  uint32_t& ids_;
  std::map<std::pair<profile::TaskGroupId, profile::TaskStackId>, Row> rows_;
};

}  // namespace phlox::sampler
