// Adds up what tasks awaited, over the censuses of one program: equal tasks are one row. The time between two
// censuses counts half for what the one found and half for what the other did; the time from the last one to
// the end of the program counts for what that one found. A task that one census could not read, since it
// changed or ended meanwhile, counts as the census before found it. Also counts the tasks of each
// outermost coroutine (task_groups.h), what waits for these and for jobs (task_waiters.h), those that were
// ready to run, and follows the tasks of single requests (task_requests.h). Pure: gets what was read, and
// passes rows to a TaskSink. Called by the recorder's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phlox/profile/interner.h"
#include "phlox/profile/stack_table.h"
#include "phlox/profile/task_time.h"
#include "phlox/python/async_tasks.h"
#include "phlox/sampler/session/task_groups.h"
#include "phlox/sampler/session/task_requests.h"
#include "phlox/sampler/session/task_waiters.h"

namespace phlox::sampler {

// Numbers of rows, shared by all programs of a recording.
struct TaskRowIds {
  uint32_t censuses = 0, loops = 0, times = 0, called = 0, groups = 0, ready = 0, waiters = 0,
           job_waiters = 0;
  RequestIds requests;
  profile::StackTable stacks;
};

class TaskSums {
 public:
  // A program may make new functions for ever: tasks beyond these are counted without their stacks. For all
  // programs together.
  static constexpr uint32_t kMostRows = 100'000, kMostStacks = 1'000'000;
  // Rows of running tasks with what they have called: beyond these, only with their coroutines.
  static constexpr uint32_t kMostCalled = 10'000;
  static constexpr size_t kMostLoops = 1000;  // of one program

  // Of them only the newest are kept.
  static constexpr uint32_t kMostReady = 20'000;

  // The row of the thread with this python id; none: not known.
  using ThreadOf = std::function<profile::ThreadId(uint64_t python_id)>;

  TaskSums(profile::ProcessId process, profile::TaskSink& sink, profile::Interner& interner, TaskRowIds& ids,
           Nanoseconds begin = 0)
      : process_(process),
        sink_(sink),
        interner_(interner),
        ids_(ids),
        groups_(sink, interner, ids.groups),
        waiters_(sink, ids.waiters),
        job_waiters_(process, sink, ids.job_waiters),
        requests_(sink, ids.requests),
        time_(begin) {}

  // `weight`: the time since the last one; the first counts for all of it. `took`: the time of reading.
  void add(const python::AsyncTasks& tasks, Nanoseconds weight, const ThreadOf& thread_of,
           Nanoseconds took = 0);
  // Nothing has changed since the last census: every task is where it was.
  void add_again(Nanoseconds weight);
  // The time from the last census to the end of the program. No task was found again.
  void end(Nanoseconds weight);
  // Reports the rows that have grown since.
  void put();
  uint64_t without_stack() const { return without_stack_; }

 private:
  struct Row {
    profile::TaskTimeId id;
    profile::TaskTime time;
    bool has_grown = false;
    int64_t change = 0;  // of the number of tasks, since the last census
  };
  // A task in the last census.
  struct Seen {
    uint32_t row = 0;
    Nanoseconds since = 0;  // seen there, census after census
    uint64_t identity = 0;  // AsyncTask::wait_identity
  };
  using Key = std::tuple<uint32_t, uint32_t, profile::TaskState, python::AwaitedKind, std::string>;

  std::vector<profile::EventLoopId> loops_of(const std::vector<python::AsyncLoop>& loops,
                                             const ThreadOf& thread_of);
  profile::EventLoopId loop_of(const std::string& type, uint64_t python_id, const ThreadOf& thread_of);
  profile::TaskStackId stack_of(const python::AsyncTasks& tasks, std::span<const python::TaskFrame> frames);
  std::span<const python::TaskFrame> kept_frames(const python::AsyncTasks& tasks,
                                                 const python::AsyncTask& task) const;
  profile::FrameId frame_of(const python::AsyncTasks& tasks, const python::TaskFrame& frame);
  uint32_t row_of(profile::EventLoopId loop, profile::TaskStackId stack, const python::AsyncTask& task);
  std::vector<uint32_t> rows_of_last(std::span<const RemoteAddress> tasks) const;
  void add_time(uint32_t row, Nanoseconds time);
  Seen add_task(const python::AsyncTask& task, uint32_t row, Nanoseconds weight, Nanoseconds part);
  void compare(const std::unordered_map<uint64_t, Seen>& now);
  void put_changes(const std::unordered_map<uint64_t, Seen>& now, Nanoseconds weight);
  void count_waiters(const python::AsyncTasks& tasks, const std::vector<profile::TaskGroupId>& groups,
                     const std::vector<profile::TaskStackId>& stacks);
  void put_ready(const python::AsyncTasks& tasks, const std::vector<profile::EventLoopId>& loops,
                 Nanoseconds took);

  profile::ProcessId process_;
  profile::TaskSink& sink_;
  profile::Interner& interner_;
  TaskRowIds& ids_;
  TaskGroups groups_;
  TaskWaiters waiters_;
  JobWaiters job_waiters_;
  TaskRequests requests_;
  Nanoseconds time_;  // of the last census
  struct Loop {
    profile::EventLoopId id;
    profile::EventLoop row;
  };
  // By the loop's address, of the last census: one that no longer runs, or does not run yet, does not say in
  // which thread.
  std::unordered_map<uint64_t, uint64_t> python_ids_;
  std::map<std::pair<uint64_t, std::string>, Loop> loops_;  // by python id and type
  std::map<Key, uint32_t> row_at_;
  std::vector<Row> rows_;
  std::unordered_map<uint64_t, Seen> last_;  // by the task's address
  std::vector<uint32_t> missed_;             // rows of tasks that the last census could not read
  bool any_ = false;                         // there was a census
  uint64_t censuses_ = 0;                    // in which tasks may have changed
  std::unordered_map<uint64_t, profile::FrameId> frames_;  // of this census, by function and line
  uint64_t without_stack_ = 0;
};

}  // namespace phlox::sampler
