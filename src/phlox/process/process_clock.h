// The CPU time of a process, over all its threads: one system call, no file, and no rights needed. Far
// cheaper than sampling, so a process that has not run since need not be sampled.
#pragma once

#include <sys/types.h>

#include <optional>

#include "phlox/base/clock.h"

namespace phlox::process {

class ProcessClock {
 public:
  explicit ProcessClock(pid_t pid);
  // None: the process is gone, or this kernel does not support it. For a running thread, the kernel counts up
  // to its last tick (some milliseconds); for all others, up to now.
  std::optional<Nanoseconds> used() const;

 private:
  std::optional<clockid_t> clock_;
};

}  // namespace phlox::process
