// asyncio's tasks of a target: what each awaits, down to the future. Read while the target runs: a chain of
// awaits whose bytes changed between two readings is read again, and left out and counted when it does not
// hold still. Nothing is written, nothing is called. Every loop over the target's memory is capped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
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
  ready,    // nothing keeps it: it runs when the loop comes to it
  waiting,  // for a future that is not done
};

// What a task awaits, where that is proved.
enum class AwaitedKind : uint8_t {
  none,        // nothing, or not known
  future,      // of which no more is known
  task,        // another task
  gather,      // asyncio.gather(): several
  wait,        // asyncio.wait() or wait_for(): one or several
  task_group,  // the end of a TaskGroup
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
  server,   // Server.serve_forever()
  socket,   // loop.sock_recv() and its likes
  nursery,  // the tasks of a nursery of trio
  object,   // something else that is awaitable; `awaited` is its class
};

struct AsyncTask {
  RemoteAddress address;
  std::string name;
  TaskState state = TaskState::waiting;
  uint32_t loop = 0;              // index into AsyncTasks::loops
  std::vector<TaskFrame> frames;  // outermost first
  bool cut = false;               // there are more frames than kMaxAwaitFrames
  AwaitedKind kind = AwaitedKind::none;
  std::string awaited;           // class or number that goes with it: "BoundedSemaphore", "0.25"
  std::vector<uint32_t> awaits;  // tasks, as indexes into AsyncTasks::tasks
  std::optional<double> until;   // of a sleep: on the loop's clock, time.monotonic(), in seconds
  std::string descriptor;        // of a socket or stream: what the link of its descriptor says
  int32_t subprocess = 0;        // its number, as the program counts; 0: not known
};

// Reads the link that a descriptor of the program is in /proc; empty: it cannot be read.
using DescriptorLink = std::function<std::string(int32_t descriptor)>;

struct AsyncLoop {
  RemoteAddress address;
  std::string type;        // "_UnixSelectorEventLoop"
  uint64_t python_id = 0;  // of the thread that runs it; 0: not known
};

struct AsyncTasks {
  std::vector<TaskFunction> functions;
  std::vector<AsyncLoop> loops;
  std::vector<AsyncTask> tasks;
  size_t unproved = 0;  // tasks that changed each time they were read
  size_t ended = 0;     // tasks that were there when the others were found, and no longer
  size_t beyond = 0;    // tasks beyond kMaxTasks
  std::string problem;  // why not every task may be here; empty: nothing is known to be missing
};

inline constexpr size_t kMaxTasks = 100'000;
inline constexpr size_t kMaxAwaitFrames = 200;
inline constexpr size_t kMaxTaskNameBytes = 200;
// Of tasks that one task awaits (gather), and of all of these together.
inline constexpr size_t kMaxAwaitedTasks = 10'000;
inline constexpr size_t kMaxAwaits = 1'000'000;

// Of every interpreter in the process.
AsyncTasks read_async_tasks(const Interpreter& interpreter, memory::RemoteMemory& memory,
                            const DescriptorLink& link);

}  // namespace phlox::python
