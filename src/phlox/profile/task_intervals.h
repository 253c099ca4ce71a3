// What tasks awaited since the last cut: the part of Intervals that tasks need. Keeps of each row only the
// time that earlier cuts had. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "phlox/profile/part.h"
#include "phlox/profile/task_time.h"

namespace phlox::profile {

class TaskIntervals : public TaskSink {
 public:
  void put_task_census(TaskCensusId, const TaskCensus&) override {}
  void put_event_loop(EventLoopId id, const EventLoop& loop) override;
  void put_task_stack(TaskStackId id, const TaskStack& stack) override;
  void put_task_time(TaskTimeId id, const TaskTime& time) override;
  void put_task_group(TaskGroupId, const TaskGroup&) override {}
  void put_ready_tasks(ReadyTasksId, const ReadyTasks&) override {}

  // The time for which tasks waited since the last cut. Ids count up from 1 again, and refer to the rows that
  // `copy` made: it copies those that are missing.
  TaskRows cut(PartCopy& copy);
  size_t kept_rows() const { return stacks_.size() + loops_.size(); }

 private:
  struct Sums {
    Nanoseconds time = 0;
    uint64_t seen = 0;
  };
  EventLoopId loop(EventLoopId id, PartCopy& copy, TaskRows& rows);
  TaskStackId stack(TaskStackId id, PartCopy& copy, TaskRows& rows);

  std::vector<EventLoop> loops_;  // by id - 1, as the next two
  std::vector<TaskStack> stacks_;
  std::vector<Sums> before_;                 // what earlier cuts had
  std::map<uint32_t, TaskTime> grown_;       // by id: since the last cut
  std::map<uint32_t, EventLoopId> loop_of_;  // of this cut
  std::map<uint32_t, TaskStackId> stack_of_;
};

}  // namespace phlox::profile
