// One sample of a process, for `dump`: the same turn, proof and consumer as in a recording, once. Everything
// goes to a Sink: every thread, in as many turns as that takes, or the number of missing ones. Stays in the
// ordinary scheduling class, so that reading variables never takes a CPU from other programs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/result.h"
#include "phlox/profile/sink.h"
#include "phlox/python/async_tasks.h"
#include "phlox/python/locals.h"
#include "phlox/python/locate.h"
#include "phlox/sampler/assemble/native_stacks.h"

namespace phlox::sampler {

struct InstantOptions {
  bool locals = false;
  bool tasks = false;  // asyncio's too
  python::LocalsLimits limits;
  std::optional<NativeSource> native;  // native frames too
  std::string unwind_cache;
  // No thread is sampled after this long.
  Nanoseconds limit = 10 * kSecond;
};

// Threads that have no row.
struct MissingThreads {
  size_t threads = 0;
  std::string why;
};

// The variables of one frame: the `depth`-th Python frame of the thread's stack, leaf first, from 0.
struct FrameLocals {
  profile::ThreadId thread;
  size_t depth = 0;
  std::vector<python::Local> variables;
};

struct Instant {
  std::string warning;      // of the interpreter, e.g. a pre-release; empty: none
  std::string description;  // "CPython 3.12.1 (default), found by …"
  std::vector<FrameLocals> locals;
  std::vector<NativeModule> modules;  // modules of the native frames
  std::vector<MissingThreads> missing;
  std::optional<python::AsyncTasks> tasks;
};

// `attempts`: how the interpreter was searched for, found or not.
Result<Instant> sample_once(pid_t pid, const InstantOptions& options, profile::Sink& sink,
                            std::vector<python::Attempt>* attempts = nullptr);

}  // namespace phlox::sampler
