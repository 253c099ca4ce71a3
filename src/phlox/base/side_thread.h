// The CPU time of helper threads that work whether or not the command makes progress: they watch for signals
// or look for new processes. cli/overdue.h leaves it out.
#pragma once

#include "phlox/base/clock.h"

namespace phlox {

// Make one in such a thread, for as long as the thread runs.
class SideThread {
 public:
  SideThread();
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Of all of them, also of those that have ended.
  static Nanoseconds cpu_time();
};

}  // namespace phlox
