// Tasks of a target (of asyncio, of trio, greenlets): what each awaits, down to the future. Read while the
// target runs: a chain of awaits whose bytes changed between two readings is read again; if it keeps
// changing, it is left out and counted. Nothing is written, nothing is called. Every loop over the target's
// memory is capped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/interpreter.h"

namespace phlox::python {

struct TaskFunction {
  std::string name;
  std::string qualified_name;
  std::string file;
  int32_t first_line = 0;
};

struct TaskFrame {
  uint32_t function = 0;  // index into AsyncTasks::functions
  int32_t line = 0;
};

enum class TaskState : uint8_t {
  running,  // its coroutine executes
  ready,    // it could run, and waits for its turn
  waiting,  // for a future that is not done
  // For greenlets:
  parked,     // switched away: it waits, or waits for its turn
  unstarted,  // nothing has switched to it yet
};

// The wait target of a task, if it is proved.
enum class AwaitedKind : uint8_t {
  none,         // nothing, or not known
  future,       // and nothing more is known
  lost_future,  // nothing else refers to it, so that only cancelling the task can end the wait
  task,         // another task
  gather,       // asyncio.gather(): several
  wait,         // asyncio.wait() or wait_for(): one or several
  task_group,   // the end of a TaskGroup
  sleep,
  lock,
  semaphore,
  condition,
  event,
  queue_item,
  queue_room,
  stream_data,
  stream_room,
  concurrent_future,  // a job of an executor
  subprocess,
  server,      // Server.serve_forever()
  socket,      // loop.sock_recv() and its relatives
  nursery,     // the tasks of a nursery of trio
  thread_job,  // a function that trio or anyio calls in a thread of its own
  object,      // another awaitable object; `awaited` is its class
};
// As in docs/json/dump.schema.json: "queue_item"; "" for none.
std::string_view awaited_key(AwaitedKind kind);

// The function in a thread that a task waits for.
struct AsyncJob {
  bool queued = false;            // no thread has begun it
  uint64_t python_id = 0;         // of the thread that runs it; 0: not known
  std::vector<TaskFrame> frames;  // outermost first; empty: they changed each time they were read
};

struct AsyncTask {
  RemoteAddress address;
  std::string name;
  TaskState state = TaskState::waiting;
  uint32_t loop = 0;              // index into AsyncTasks::loops
  std::vector<TaskFrame> frames;  // outermost first
  bool cut = false;               // there are more frames than kMaxAwaitFrames
  AwaitedKind kind = AwaitedKind::none;
  std::string awaited;           // class or number of the wait target: "BoundedSemaphore", "0.25"
  std::vector<uint32_t> awaits;  // tasks, as indexes into AsyncTasks::tasks
  std::optional<double> until;   // for a sleep: its end on the loop's clock, time.monotonic(), in seconds
  std::string descriptor;        // for a socket or stream: the link of its descriptor
  int32_t subprocess = 0;        // its PID in the program's namespace; 0: not known
  std::optional<AsyncJob> job;
  uint32_t lock = 0;  // of AsyncTasks::locks, from 1; 0: it waits for none
  // By addresses: another number if another coroutine waits here, or for another future. 0: not known.
  uint64_t wait_identity = 0;
  bool unobserved = false;  // proved: no task and no callback waits for its end
  // A number that no other task has, if it is the task of one request (request_tasks.h): N of asyncio's name
  // "Task-N"; trio's own number plus one. 0: it is none, or is not numbered.
  uint64_t request = 0;
  // The innermost ones of `frames`: what a running coroutine has called. Only with TaskSources::chains_only,
  // for a request, and if it is proved.
  uint32_t called = 0;
};

// What a thread of such a pool runs, from before the tasks were read until after: whatever waits for it then
// is among the tasks.
struct PoolJob {
  uint32_t function = 0;         // index into AsyncTasks::functions
  std::optional<uint32_t> task;  // the first that waits for it, as an index into AsyncTasks::tasks
};

// A lock, semaphore or limiter that tasks wait for.
struct AsyncLock {
  // Tasks, as indexes into AsyncTasks::tasks, that are inside its `async with` (or own it, with trio) at the
  // moment at which other tasks wait for it. More may hold it: acquire() leaves no trace.
  std::vector<uint32_t> holders;
};

// Reads the /proc link of a descriptor of the program; empty: it cannot be read.
using DescriptorLink = std::function<std::string(int32_t descriptor)>;

struct AsyncLoop {
  RemoteAddress address;
  std::string type;        // "_UnixSelectorEventLoop"; of greenlets "gevent", "eventlet" or "greenlet"
  uint64_t python_id = 0;  // of the thread that runs it; 0: not known
  bool greenlets = false;  // `address` is the greenlet in which the thread began
};

// Where the program's objects may lie: memory that is its own.
struct HeapRange {
  RemoteAddress start, end;
};
struct Heap {
  std::vector<HeapRange> ranges;
  std::string problem;  // why it may not be all; empty: it is
};

class PageMemory;
struct KnownModules;

// What only the process can tell; any of them may be missing.
struct TaskSources {
  // Only the chain of each task, the kind and class of what it awaits, the tasks that it awaits, and `jobs`:
  // no names (`request` is set nevertheless), no holders of locks, no frames of jobs, no sockets. Half the
  // work.
  bool chains_only = false;
  DescriptorLink link;
  std::function<Heap()> heap;  // called if there are greenlets
  // Called after every few hundred tasks, which take milliseconds, so that the caller can do other work
  // meanwhile.
  std::function<void()> between;
  // Reused for the same memory: its pages are allocated once for many samples.
  PageMemory* pages = nullptr;
  // What earlier calls have found in the same modules, and this one adds to it.
  KnownModules* known = nullptr;
};

struct AsyncTasks {
  std::vector<TaskFunction> functions;
  std::vector<AsyncLoop> loops;
  std::vector<AsyncTask> tasks;
  std::vector<AsyncLock> locks;
  std::vector<PoolJob> jobs;  // of threads with a function in Python; only with TaskSources::chains_only
  size_t unproved = 0;        // tasks that changed each time they were read
  size_t ended = 0;           // tasks that ended after the others were found
  std::vector<RemoteAddress> missed;  // the unproved and ended ones
  size_t beyond = 0;                  // tasks beyond kMaxTasks
  bool imported = false;  // asyncio or trio is, or it is not known whether: there may be tasks later
  std::string problem;    // why tasks may be missing; empty: none is known to be missing
};

inline constexpr size_t kMaxTasks = 100'000;
inline constexpr size_t kMaxChains = 10'000;  // tasks, if only chains are read
inline constexpr size_t kMaxAwaitFrames = 200;
inline constexpr size_t kMaxTaskNameBytes = 200;
// For tasks that one task awaits (gather), and for all of these together.
inline constexpr size_t kMaxAwaitedTasks = 10'000;
inline constexpr size_t kMaxAwaits = 1'000'000;

// Another number if modules were imported since, in any interpreter; 0: not known.
uint64_t modules_stamp(const Interpreter& interpreter, memory::RemoteMemory& memory);

// For every interpreter in the process.
AsyncTasks read_async_tasks(const Interpreter& interpreter, memory::RemoteMemory& memory,
                            const TaskSources& sources);

}  // namespace phlox::python
