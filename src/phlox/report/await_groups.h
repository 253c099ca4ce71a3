// Await time by group: the outermost coroutine of a task, the line of its await, and what is awaited in the
// end. For each event loop. Pure.
#pragma once

#include <string>
#include <vector>

#include "phlox/profile/task_time.h"

namespace phlox::report {

// Tasks of one outermost coroutine that wait at one line of it.
struct AwaitGroup {
  profile::FrameId frame;  // none: a task without a coroutine, or one that was counted without its stack
  std::string kind, awaited;
  Nanoseconds time = 0;
  uint64_t seen = 0;
  Nanoseconds longest = 0;
  profile::TaskStackId stack;  // the one of its chains with the most time
};

struct LoopAwaits {
  profile::EventLoopId loop;
  Nanoseconds waiting = 0, ready = 0, running = 0;  // of all its tasks together
  std::vector<AwaitGroup> groups;                   // waiting; the most time first
};

// Loops that had a task, the most waiting first.
std::vector<LoopAwaits> loop_awaits(const profile::TaskRows& rows);

// Totals of one process over its recorders.
profile::TaskCensus census_of(const profile::TaskRows& rows, profile::ProcessId process);

// Outermost first.
std::vector<profile::FrameId> task_frames(const profile::TaskRows& rows, profile::TaskStackId stack);

}  // namespace phlox::report
