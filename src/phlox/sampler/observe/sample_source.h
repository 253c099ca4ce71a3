// Samples one program of a process and puts the records into its ring: a sampling thread of ours
// (sampler_thread.h), or the capture inside the kernel (kernel_sources.h). Its user does not know
// which. Called by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include "phlox/base/clock.h"
#include "phlox/process/thread_context.h"
#include "phlox/sampler/observe/counts.h"
#include "phlox/sampler/observe/mode.h"

namespace phlox::sampler {

struct SourceNumbers {
  Counts counts;
  uint64_t ticks_missed = 0;
  double rate_hz = 0;           // requested at the moment
  Nanoseconds cpu = 0;          // of this thread
  Nanoseconds target_time = 0;  // taken from the target
  Mode mode = Mode::automatic;  // as requested
  SchedulingClass scheduling = SchedulingClass::ordinary;
  bool schedstat_off = false;
  std::optional<NativeSource> native;
  EventNumbers events;  // of `native`
  bool process_gone = false;
  Stateless stateless;
  uint64_t by_perf = 0, by_clock = 0;  // wake-ups
  uint64_t rests = 0;                  // for the program to get its half of the time
};

class SampleSource {
 public:
  virtual ~SampleSource() = default;

  // Ends the sampling; all records are then in the ring.
  virtual void stop() = 0;
  virtual SourceNumbers numbers() = 0;
  // Its process has ended: waits a moment for the last records about it.
  virtual void await_end() {}
  // The end of the process, and the CPU time of its first thread; none: it is running, or not known here.
  struct End {
    Nanoseconds time = 0, used = 0;
  };
  virtual std::optional<End> end() const { return {}; }
  // How often numbers() have changed.
  virtual uint64_t published() const = 0;
  // Its threads publish there which span of a trace they work for: from now on, samples have it.
  virtual void with_traces(const process::ThreadVariable&) {}
  // `threads`: kernel ids of the sampled threads.
  virtual void stay_above(std::span<const pid_t>) {}
};

}  // namespace phlox::sampler
