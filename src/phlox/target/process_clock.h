// How much CPU time a process has used, all its threads added up: one call of the kernel, no file, and
// anybody may ask. Cheaper by far than to look at a process, so that one that has not run since need not be
// looked at.
#pragma once

#include <sys/types.h>

#include <optional>

#include "phlox/base/clock.h"

namespace phlox::target {

class ProcessClock {
 public:
  explicit ProcessClock(pid_t pid);
  // None: the process is gone, or this kernel does not tell. Of a thread that runs, the kernel counts up to
  // its last tick (some milliseconds); of all others, up to now.
  std::optional<Nanoseconds> used() const;

 private:
  std::optional<clockid_t> clock_;
};

}  // namespace phlox::target
