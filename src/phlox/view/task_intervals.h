// What tasks awaited since the last cut, and what waited for tasks and jobs since the beginning: the part of
// Intervals that tasks need. Keeps of each time only what earlier cuts had. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "phlox/profile/task_time.h"
#include "phlox/view/part.h"

namespace phlox::view {

class TaskIntervals : public profile::TaskSink {
 public:
  void put_task_census(profile::TaskCensusId, const profile::TaskCensus&) override {}
  void put_event_loop(profile::EventLoopId id, const profile::EventLoop& loop) override;
  void put_task_stack(profile::TaskStackId id, const profile::TaskStack& stack) override;
  void put_task_time(profile::TaskTimeId id, const profile::TaskTime& time) override;
  void put_task_group(profile::TaskGroupId id, const profile::TaskGroup& group) override;
  void put_ready_tasks(profile::ReadyTasksId, const profile::ReadyTasks&) override {}
  void put_task_waiter(profile::TaskWaiterId id, const profile::TaskWaiter& waiter) override;
  void put_job_waiter(profile::JobWaiterId id, const profile::JobWaiter& waiter) override;
  void put_request(profile::RequestId, const profile::Request&) override {}
  void put_request_part(profile::RequestPartId, const profile::RequestPart&) override {}

  // The time for which tasks waited since the last cut. Ids count up from 1 again, and refer to the rows that
  // `copy` made: it copies those that are missing.
  profile::TaskRows cut(PartCopy& copy);
  // To the same rows: what waited since the beginning.
  void add_waiters(PartCopy& copy, profile::TaskRows& rows);
  size_t kept_rows() const {
    return stacks_.size() + loops_.size() + groups_.size() + waiters_.size() + job_waiters_.size();
  }

 private:
  struct Sums {
    Nanoseconds time = 0;
    uint64_t seen = 0;
  };
  profile::EventLoopId loop(profile::EventLoopId id, PartCopy& copy, profile::TaskRows& rows);
  profile::TaskStackId stack(profile::TaskStackId id, PartCopy& copy, profile::TaskRows& rows);

  std::vector<profile::EventLoop> loops_;  // by id - 1, as the next ones
  std::vector<profile::TaskStack> stacks_;
  std::vector<profile::TaskGroup> groups_;
  std::vector<profile::TaskWaiter> waiters_;
  std::vector<profile::JobWaiter> job_waiters_;
  std::vector<Sums> before_;                          // what earlier cuts had
  std::map<uint32_t, profile::TaskTime> grown_;       // by id: since the last cut
  std::map<uint32_t, profile::EventLoopId> loop_of_;  // of this cut
  std::map<uint32_t, profile::TaskStackId> stack_of_;
};

}  // namespace phlox::view
