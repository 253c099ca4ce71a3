// What tasks of event loops awaited, over time: rows of the recording's tables task_census, event_loop,
// task_stack, task_time, task_group, ready_tasks, task_waiter, job_waiter, request and request_part
// (docs/recording.md). Apart from the samples of threads: many tasks wait at once in one thread, so their
// times add up to more than the recording lasted.
// Sampled: the time between two censuses of the tasks counts half for what the one found and half for what
// the other did; from the last one to the end of the program it counts for what that one found.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/profile/model.h"
#include "phlox/profile/rows.h"

namespace phlox::profile {

using TaskCensusId = Id<struct TaskCensusTag>;
using EventLoopId = Id<struct EventLoopTag>;
using TaskStackId = Id<struct TaskStackTag>;
using TaskTimeId = Id<struct TaskTimeTag>;
using TaskGroupId = Id<struct TaskGroupTag>;
using ReadyTasksId = Id<struct ReadyTasksTag>;
using TaskWaiterId = Id<struct TaskWaiterTag>;
using JobWaiterId = Id<struct JobWaiterTag>;
using RequestId = Id<struct RequestTag>;
using RequestPartId = Id<struct RequestPartTag>;

// All censuses of one process, by one recorder.
struct TaskCensus {
  ProcessId process;
  uint64_t times = 0;    // how many there were
  Nanoseconds span = 0;  // the time that they count for
  Nanoseconds cost = 0;  // CPU time that they took from Phlox
  // Tasks in all of them: read and proved; changed each time they were read; ended before they were read;
  // more than are read at once; counted without their coroutines, because there are too many different ones.
  uint64_t tasks = 0, unproved = 0, ended = 0, beyond = 0, without_stack = 0;
  std::string problem = {};  // why tasks may be missing; empty: none is known to be missing

  friend bool operator==(const TaskCensus&, const TaskCensus&) = default;
};

// The event loops of one type that one thread runs, one after the other.
struct EventLoop {
  ProcessId process;
  ThreadId thread;   // none: not known
  std::string type;  // "_UnixSelectorEventLoop"

  friend bool operator==(const EventLoop&, const EventLoop&) = default;
};

// A tree of coroutines: parents, which await, come before what they await.
struct TaskStack {
  TaskStackId parent;  // none: the outermost
  FrameId frame;

  friend bool operator==(const TaskStack&, const TaskStack&) = default;
};

enum class TaskState : uint8_t {
  waiting = 0,  // for something that has not come
  ready = 1,    // to run: it waits for its turn
  running = 2,
};

// How the number of tasks of a row changed from one census to the next, times the time between the two (task
// ns): what its sampling error follows from (report/await_error.h). There are too many changes to keep them
// all. So all rows add those of one census to the same bin, with the same random sign. For any set of rows,
// the squares of the bins' sums then add up to the squares of the changes of the whole set: on average, and
// exactly while each bin has one census.
struct TaskChanges {
  std::array<float, 32> bins{};

  friend bool operator==(const TaskChanges&, const TaskChanges&) = default;
};

// Equal tasks of all censuses: the same chain of coroutines, at the same lines, for the same kind of thing.
struct TaskTime {
  EventLoopId loop;
  TaskStackId stack;  // none: no coroutine
  TaskState state = TaskState::waiting;
  std::string kind = {};     // "sleep", "lock", …, as in docs/json/dump.schema.json; empty: none
  std::string awaited = {};  // the class of what is awaited: "BoundedSemaphore"; empty: not known
  Nanoseconds time = 0;      // of all tasks together
  uint64_t seen = 0;         // tasks in censuses: one task in three censuses is three
  Nanoseconds longest = 0;   // between the first and the last of censuses in a row that found one task here
  uint64_t at_end = 0;       // tasks that the last census found here
  // How often a census found a task here and the next one did not, or found that it waits for another future.
  // Not known in older recordings, whose `at_end` is 0.
  uint64_t went_on = 0;
  std::optional<TaskChanges> changes = {};  // none: an older recording

  friend bool operator==(const TaskTime&, const TaskTime&) = default;
};

// Tasks of one outermost coroutine, wherever they are. Moments are since the first census that found one.
struct TaskGroup {
  EventLoopId loop;
  FrameId frame;                 // the function, without a line
  Nanoseconds lasted = 0;        // the moment of the last census
  uint64_t times = 0;            // censuses since, the first one included
  uint64_t first = 0, last = 0;  // tasks in the first and in the last census
  uint64_t begun = 0;            // tasks that later censuses found first
  uint64_t rises = 0;            // censuses that found such tasks
  uint64_t gone = 0;             // tasks that two censuses in a row no longer found
  Nanoseconds mean_begin = 0;    // the average moment at which a begun task was found first
  Nanoseconds last_begin = 0;    // and the last one
  uint64_t unobserved = 0;       // tasks in the last census whose end nothing waits for

  friend bool operator==(const TaskGroup&, const TaskGroup&) = default;
};

// A census that found tasks of a loop ready to run.
struct ReadyTasks {
  EventLoopId loop;
  Nanoseconds time = 0, took = 0;  // when the census began, and how long it took
  uint64_t tasks = 0;

  friend bool operator==(const ReadyTasks&, const ReadyTasks&) = default;
};

// Which task waits for the tasks of a group to end.
struct TaskWaiter {
  TaskGroupId group;
  TaskStackId stack;  // of the task that waits; none: no task waits for them, or its stack is not known
  uint64_t seen = 0;  // tasks of the group in censuses: one task in three censuses is three

  friend bool operator==(const TaskWaiter&, const TaskWaiter&) = default;
};

// Which task waits for what threads of a pool run: of an executor, of anyio or of trio.
struct JobWaiter {
  ProcessId process;
  FrameId frame;  // the function that the thread runs, without a line
  // Of the task that waits, below the tasks that wait for that one. None: no task waits for it, or its stack
  // is not known.
  TaskStackId stack;
  uint64_t seen = 0;  // threads in censuses: one call in three censuses is three

  friend bool operator==(const JobWaiter&, const JobWaiter&) = default;
};

// One request of a server that runs a task for each: the life of that task. Its begin and its end lie between
// two moments each: a census that did not find the task, and one that did.
struct Request {
  EventLoopId loop;
  std::optional<Nanoseconds> earliest_begin;  // none: not known, it may have begun before the first census
  Nanoseconds latest_begin = 0;
  Nanoseconds earliest_end = 0;
  std::optional<Nanoseconds> latest_end = {};  // none: not known, it may not have ended
  uint64_t seen = 0;                           // censuses that found it, at least 2

  Nanoseconds least() const { return earliest_end > latest_begin ? earliest_end - latest_begin : 0; }
  // None: not known.
  std::optional<Nanoseconds> most() const {
    if (!earliest_begin || !latest_end || *latest_end < *earliest_begin) return {};
    return *latest_end - *earliest_begin;
  }

  friend bool operator==(const Request&, const Request&) = default;
};

// A part of a request's time: its task, or the tasks that this one waits for, in one row of task_time.
struct RequestPart {
  RequestId request;
  TaskTimeId time;           // none: the row is not in use
  bool awaited = false;      // of tasks that the request's task waits for, or of tasks that these wait for
  Nanoseconds duration = 0;  // of all such tasks together, sampled as TaskTime::time

  friend bool operator==(const RequestPart&, const RequestPart&) = default;
};

// Receives such rows, as a Sink does the others: ids count up from 1, a row refers to earlier rows only, and
// put with a known id replaces the row. Called by the recorder's thread.
class TaskSink {
 public:
  virtual ~TaskSink() = default;
  virtual void put_task_census(TaskCensusId id, const TaskCensus& census) = 0;
  virtual void put_event_loop(EventLoopId id, const EventLoop& loop) = 0;
  virtual void put_task_stack(TaskStackId id, const TaskStack& stack) = 0;
  virtual void put_task_time(TaskTimeId id, const TaskTime& time) = 0;
  virtual void put_task_group(TaskGroupId id, const TaskGroup& group) = 0;
  // Only the newest ones are kept: ids begin again.
  virtual void put_ready_tasks(ReadyTasksId id, const ReadyTasks& ready) = 0;
  virtual void put_task_waiter(TaskWaiterId id, const TaskWaiter& waiter) = 0;
  virtual void put_job_waiter(JobWaiterId id, const JobWaiter& waiter) = 0;
  // Only the longest ones of a program are kept: a row may become one of another request.
  virtual void put_request(RequestId id, const Request& request) = 0;
  virtual void put_request_part(RequestPartId id, const RequestPart& part) = 0;
};

// All of them, by id - 1; what they refer to is in the Profile of the same recording.
class TaskRows : public TaskSink {
 public:
  void put_task_census(TaskCensusId id, const TaskCensus& census) override { put_row(censuses, id, census); }
  void put_event_loop(EventLoopId id, const EventLoop& loop) override { put_row(loops, id, loop); }
  void put_task_stack(TaskStackId id, const TaskStack& stack) override { put_row(stacks, id, stack); }
  void put_task_time(TaskTimeId id, const TaskTime& time) override { put_row(times, id, time); }
  void put_task_group(TaskGroupId id, const TaskGroup& group) override { put_row(groups, id, group); }
  void put_ready_tasks(ReadyTasksId id, const ReadyTasks& row) override { put_row(ready, id, row); }
  void put_task_waiter(TaskWaiterId id, const TaskWaiter& row) override { put_row(waiters, id, row); }
  void put_job_waiter(JobWaiterId id, const JobWaiter& row) override { put_row(job_waiters, id, row); }
  void put_request(RequestId id, const Request& row) override { put_row(requests, id, row); }
  void put_request_part(RequestPartId id, const RequestPart& row) override {
    put_row(request_parts, id, row);
  }

  std::vector<TaskCensus> censuses;
  std::vector<EventLoop> loops;
  std::vector<TaskStack> stacks;
  std::vector<TaskTime> times;
  std::vector<TaskGroup> groups;
  std::vector<ReadyTasks> ready;
  std::vector<TaskWaiter> waiters;
  std::vector<JobWaiter> job_waiters;
  std::vector<Request> requests;
  std::vector<RequestPart> request_parts;
};

}  // namespace phlox::profile
