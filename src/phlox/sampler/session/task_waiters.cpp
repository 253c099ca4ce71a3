#include "phlox/sampler/session/task_waiters.h"

namespace phlox::sampler {

FirstWaiters first_waiters(const python::AsyncTasks& tasks, const std::vector<profile::TaskStackId>& stacks) {
  FirstWaiters waiters(tasks.tasks.size());
  for (uint32_t i = 0; i < tasks.tasks.size(); ++i) {
    if (!stacks[i]) continue;
    for (const uint32_t awaited : tasks.tasks[i].awaits) {
      if (awaited < waiters.size() && !waiters[awaited]) waiters[awaited] = i;
    }
  }
  return waiters;
}

std::vector<python::TaskFrame> frames_with_waiters(const python::AsyncTasks& tasks,
                                                   const FirstWaiters& waiters, uint32_t task) {
  constexpr size_t kMostTasks = 16;  // they may wait for each other
  std::vector<uint32_t> chain;
  for (std::optional<uint32_t> at = task; at && chain.size() < kMostTasks; at = waiters[*at])
    chain.push_back(*at);
  std::vector<python::TaskFrame> frames;
  for (size_t i = chain.size(); i-- > 0;) {
    const auto& own = tasks.tasks[chain[i]].frames;
    frames.insert(frames.end(), own.begin(), own.end());
  }
  return frames;
}

void TaskWaiters::add(const FirstWaiters& waiters, const std::vector<profile::TaskGroupId>& groups,
                      const std::vector<profile::TaskStackId>& stacks) {
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i]) continue;
    profile::TaskStackId stack = waiters[i] ? stacks[*waiters[i]] : profile::TaskStackId();
    if (!rows_.has_room_for({groups[i], stack})) stack = {};
    rows_.count({groups[i], stack}, {groups[i], stack});
  }
}

void TaskWaiters::put() {
  rows_.put(
      [this](profile::TaskWaiterId id, const profile::TaskWaiter& row) { sink_.put_task_waiter(id, row); });
}

void JobWaiters::add(profile::FrameId function, profile::TaskStackId stack) {
  if (!rows_.has_room_for({function, stack})) stack = {};
  count(last_.emplace_back(function, stack));
}

void JobWaiters::count(const Key& key) {
  rows_.count(key, {process_, key.first, key.second});
}

void JobWaiters::add_again() {
  for (const Key& key : last_) count(key);
}

void JobWaiters::put() {
  rows_.put(
      [this](profile::JobWaiterId id, const profile::JobWaiter& row) { sink_.put_job_waiter(id, row); });
}

}  // namespace phlox::sampler
