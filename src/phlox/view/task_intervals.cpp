#include "phlox/view/task_intervals.h"

#include <utility>

#include "phlox/profile/rows.h"

namespace phlox::view {

using namespace profile;

void TaskIntervals::put_event_loop(EventLoopId id, const EventLoop& loop) {
  put_row(loops_, id, loop);
}
void TaskIntervals::put_task_stack(TaskStackId id, const TaskStack& stack) {
  put_row(stacks_, id, stack);
}
void TaskIntervals::put_task_group(TaskGroupId id, const TaskGroup& group) {
  put_row(groups_, id, group);
}
void TaskIntervals::put_task_waiter(TaskWaiterId id, const TaskWaiter& waiter) {
  put_row(waiters_, id, waiter);
}
void TaskIntervals::put_job_waiter(JobWaiterId id, const JobWaiter& waiter) {
  put_row(job_waiters_, id, waiter);
}
void TaskIntervals::put_task_time(TaskTimeId id, const TaskTime& time) {
  if (id && time.state == TaskState::waiting) grown_[id.value] = time;
}

EventLoopId TaskIntervals::loop(EventLoopId id, PartCopy& copy, TaskRows& rows) {
  if (!id || id.value > loops_.size()) return {};
  const auto [at, added] = loop_of_.try_emplace(id.value);
  if (added) {
    EventLoop row = loops_[id.value - 1];
    row.process = copy.process(row.process);
    row.thread = copy.thread(row.thread);
    at->second = EventLoopId(static_cast<uint32_t>(rows.loops.size() + 1));
    rows.put_event_loop(at->second, row);
  }
  return at->second;
}

// From the innermost coroutine outwards to one already copied, and back.
TaskStackId TaskIntervals::stack(TaskStackId id, PartCopy& copy, TaskRows& rows) {
  std::vector<TaskStackId> missing;
  TaskStackId parent;
  while (id && id.value <= stacks_.size()) {
    if (const auto found = stack_of_.find(id.value); found != stack_of_.end()) {
      parent = found->second;
      break;
    }
    missing.push_back(id);
    const TaskStackId next = stacks_[id.value - 1].parent;
    id = next < id ? next : TaskStackId();
  }
  for (size_t i = missing.size(); i-- > 0;) {
    const TaskStackId fresh(static_cast<uint32_t>(rows.stacks.size() + 1));
    rows.put_task_stack(fresh, {parent, copy.frame(stacks_[missing[i].value - 1].frame)});
    stack_of_[missing[i].value] = fresh;
    parent = fresh;
  }
  return parent;
}

TaskRows TaskIntervals::cut(PartCopy& copy) {
  TaskRows rows;
  loop_of_.clear();
  stack_of_.clear();
  for (auto& [id, time] : std::exchange(grown_, {})) {
    if (before_.size() < id) before_.resize(id);
    Sums& before = before_[id - 1];
    TaskTime row = time;
    row.time -= before.time;
    row.seen -= before.seen;
    before = {time.time, time.seen};
    if (row.time <= 0) continue;
    row.loop = loop(time.loop, copy, rows);
    row.stack = stack(time.stack, copy, rows);
    rows.put_task_time(TaskTimeId(static_cast<uint32_t>(rows.times.size() + 1)), row);
  }
  return rows;
}

void TaskIntervals::add_waiters(PartCopy& copy, TaskRows& rows) {
  for (const TaskGroup& group : groups_) {
    TaskGroup row = group;
    row.loop = loop(group.loop, copy, rows);
    row.frame = copy.frame(group.frame);
    rows.groups.push_back(row);  // the ids are the same
  }
  for (const TaskWaiter& row : waiters_)
    rows.waiters.push_back({row.group, stack(row.stack, copy, rows), row.seen});
  for (const JobWaiter& row : job_waiters_) {
    rows.job_waiters.push_back(
        {copy.process(row.process), copy.frame(row.frame), stack(row.stack, copy, rows), row.seen});
  }
}

}  // namespace phlox::view
