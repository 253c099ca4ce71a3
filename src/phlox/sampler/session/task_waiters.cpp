#include "phlox/sampler/session/task_waiters.h"

namespace phlox::sampler {

void TaskWaiters::count(profile::TaskGroupId group, profile::TaskStackId stack) {
  auto found = rows_.find({group, stack});
  if (found == rows_.end()) {
    if (stack && rows_.size() >= kMostWaiters) return count(group, {});
    found = rows_.emplace(std::pair(group, stack), Row{profile::TaskWaiterId(++ids_), {group, stack}}).first;
  }
  ++found->second.row.seen;
  found->second.has_grown = true;
}

void TaskWaiters::add(const python::AsyncTasks& tasks, const std::vector<profile::TaskGroupId>& groups,
                      const std::vector<profile::TaskStackId>& stacks) {
  // The first task that waits for each.
  std::vector<profile::TaskStackId> waiter(tasks.tasks.size());
  for (size_t i = 0; i < tasks.tasks.size(); ++i) {
    for (const uint32_t awaited : tasks.tasks[i].awaits) {
      if (awaited < waiter.size() && !waiter[awaited]) waiter[awaited] = stacks[i];
    }
  }
  for (size_t i = 0; i < tasks.tasks.size(); ++i) {
    if (groups[i]) count(groups[i], waiter[i]);
  }
}

void TaskWaiters::put() {
  for (auto& [key, one] : rows_) {
    if (one.has_grown) sink_.put_task_waiter(one.id, one.row);
    one.has_grown = false;
  }
}

}  // namespace phlox::sampler
