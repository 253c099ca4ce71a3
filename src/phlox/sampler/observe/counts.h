// What a source of samples counts. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "phlox/base/clock.h"

namespace phlox::sampler {

struct Counts {
  // Rounds: each worker takes at most one turn in a round. A running thread is sampled this often.
  uint64_t ticks = 0;
  uint64_t samples = 0, retried = 0, detached = 0, cut = 0, unproved = 0, lost = 0;
  uint64_t moved = 0, unreadable = 0, broken = 0;
  uint64_t cpu_refused = 0;    // samples of a thread on a CPU that we may not use
  uint64_t stopped_alone = 0;  // samples of a thread that was stopped only for its Python half
  uint64_t stops = 0, stop_refused = 0;
  Nanoseconds stood = 0;    // how long threads were kept stopped (process::StopCounts)
  uint64_t migrations = 0;  // how often a worker moved to another CPU
  uint64_t follow_ups = 0;
  uint64_t reads = 0;     // stacks that were read again
  uint64_t not_read = 0;  // frames without a name: more new ones at once than are kept
};

// Facts about the events of a process.
struct EventNumbers {
  size_t most = 0;      // the largest number at once
  size_t without = 0;   // the maximum number of threads that ran at once without one
  bool kernel = false;  // the kernel's frames are included
};

// Python thread states without a thread of this process, as far as that can be known: one that has not
// started yet, has just ended, or was left behind by a fork. Only those that were checked several times.
struct Stateless {
  size_t states = 0;
  size_t unknown = 0;  // of them: may have one, but it is not known which
  size_t waiting = 0;  // besides them: not checked yet, because a turn adds only some
};

}  // namespace phlox::sampler
