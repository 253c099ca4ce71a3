// Tasks and greenlets in a dump: grouped by outermost coroutine and the line of its await, or each by itself.
// Pure: the caller passes what it read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/report/json_text.h"

namespace phlox::report {

struct DumpTaskFunction {
  std::string name;
  std::string qualified_name;
  std::string file;
  int32_t first_line = 0;
};

struct DumpTaskFrame {
  uint32_t function = 0;  // index into DumpTasks::functions
  int32_t line = 0;
};

// parked, unstarted: of greenlets.
enum class DumpTaskState : uint8_t { running, ready, waiting, parked, unstarted };

// The function in a thread that a task waits for.
struct DumpJob {
  bool queued = false;                // no thread has begun it
  uint64_t python_id = 0;             // of the thread that runs it; 0: not known
  std::vector<DumpTaskFrame> frames;  // outermost first
};

struct DumpTask {
  std::string name;
  DumpTaskState state = DumpTaskState::waiting;
  uint32_t loop = 0;                  // index into DumpTasks::loops
  std::vector<DumpTaskFrame> frames;  // outermost first
  bool cut = false;                   // there are more frames
  std::string kind;     // kind of its wait target, as docs/json/dump.schema.json lists them; empty: none
  std::string awaited;  // the class or the number of that target
  std::vector<uint32_t> awaits;        // tasks, as indexes into DumpTasks::tasks
  std::optional<double> seconds_left;  // of a sleep
  std::string socket, peer;            // both ends: "10.0.0.5:5432"; empty: not known
  int32_t subprocess = 0;              // its number, as the program counts; 0: not known
  std::optional<DumpJob> job;
  uint32_t lock = 0;  // of DumpTasks::locks, from 1; 0: it waits for none
};

struct DumpLock {
  std::vector<uint32_t> holders;  // tasks that are known to hold it, as indexes into DumpTasks::tasks
};

struct DumpLoop {
  std::string type;
  uint64_t python_id = 0;  // of its thread; 0: not known
  bool greenlets = false;  // it has no tasks, but greenlets of one thread
};

// The tasks of one process.
struct DumpTasks {
  int32_t pid = 0;
  std::vector<DumpTaskFunction> functions;
  std::vector<DumpLoop> loops;
  std::vector<DumpTask> tasks;
  std::vector<DumpLock> locks;
  size_t unproved = 0;  // changed each time they were read
  size_t ended = 0;     // before they were read
  size_t beyond = 0;    // more than are read
  std::string problem;  // why tasks may be missing; empty: none is known to be missing
};

// A line of the target's source; empty: not known.
using DumpLine = std::function<std::string_view(const std::string& file, int32_t line)>;

// `all`: every task, not groups. Empty: nothing to report.
std::string tasks_text(const profile::Profile& instant, const DumpTasks& tasks, bool all,
                       const DumpLine& line);
// Why tasks are missing, one sentence each.
std::vector<std::string> missing_tasks(const DumpTasks& tasks);
// Members event_loops, tasks, locks and missing_tasks.
void write_tasks(JsonText& json, const std::vector<DumpTasks>& processes);

}  // namespace phlox::report
