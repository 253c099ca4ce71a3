// What tasks of event loops awaited, over time: rows of the recording's tables task_census, event_loop,
// task_stack and task_time (docs/recording.md). Apart from the samples of threads: many tasks wait at once in
// one thread, so their times add up to more than the recording lasted. Sampled: the time between
// two censuses of the tasks counts half for what the one found and half for what the other did.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/profile/model.h"

namespace phlox::profile {

using TaskCensusId = Id<struct TaskCensusTag>;
using EventLoopId = Id<struct EventLoopTag>;
using TaskStackId = Id<struct TaskStackTag>;
using TaskTimeId = Id<struct TaskTimeTag>;

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

  friend bool operator==(const TaskTime&, const TaskTime&) = default;
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
};

// All of them, by id - 1; what they refer to is in the Profile of the same recording.
class TaskRows : public TaskSink {
 public:
  void put_task_census(TaskCensusId id, const TaskCensus& census) override { put(censuses, id, census); }
  void put_event_loop(EventLoopId id, const EventLoop& loop) override { put(loops, id, loop); }
  void put_task_stack(TaskStackId id, const TaskStack& stack) override { put(stacks, id, stack); }
  void put_task_time(TaskTimeId id, const TaskTime& time) override { put(times, id, time); }

  std::vector<TaskCensus> censuses;
  std::vector<EventLoop> loops;
  std::vector<TaskStack> stacks;
  std::vector<TaskTime> times;

 private:
  template <class Row, class RowId>
  static void put(std::vector<Row>& rows, RowId id, const Row& row) {
    if (!id) return;
    if (rows.size() < id.value) rows.resize(id.value);
    rows[id.value - 1] = row;
  }
};

}  // namespace phlox::profile
