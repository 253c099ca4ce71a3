// A thread that is sampled from user space: the kernel's facts about it, and the consumer's knowledge. Called
// by the worker that holds the turn lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/process/thread_probe.h"
#include "phlox/sampler/capture/perf_source.h"
#include "phlox/sampler/observe/sample_log.h"

namespace phlox::sampler {

struct ObservedThread : ReportedThread {
  std::unique_ptr<process::ThreadProbe> probe;
  bool alive = true;
  EventState event;                       // in this turn
  process::SchedStat seen;                // at the last sample
  bool was_blocked = false;               // at that time, in a system call, proved
  uint64_t blocked_since = 0;             // `event.last` of that sample; 0: it had no event
  uint32_t idle_samples = 0;              // samples in which it had not run
  uint32_t empty_samples = 0;             // rejected samples since the last accepted one
  uint64_t last_tick = 0, next_tick = 0;  // of its last and its next sample
  uint64_t c_stack_end = 0;               // as learnt; only with native stacks

  // Since the last sample, without interruption.
  bool has_slept_on(const process::SchedStat& now) const {
    return has_stack && was_blocked && unmoved(now, seen) && !now.off();
  }

  // As the functions of the log. `stat`: at the sample, proved.
  void saw(SampleLog& log, const ThreadSample& sample, const process::SchedStat& stat, uint64_t tick,
           const std::vector<CodeLocation>* frames, const NativeParts& native);
  // Returns the number of its samples.
  uint64_t did_not_run(SampleLog& log, const process::SchedStat& stat, uint64_t tick, Nanoseconds now);
  void reject(SampleLog& log, profile::GilState gil, Nanoseconds now, Rejected why);
};

}  // namespace phlox::sampler
