// What looks at one program of a process and puts what it sees into its ring: a thread of ours that samples
// (sampler_thread.h), or the capture inside the kernel (kernel/kernel_source.h). Whoever records it does not
// know which. Called by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include "phlox/base/clock.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/capture/process_sampler.h"
#include "phlox/sampler/capture/way.h"
#include "phlox/sampler/kernel/kernel_source.h"
#include "phlox/sampler/session/scheduling.h"

namespace phlox::sampler {

struct SourceNumbers {
  Counts counts;
  uint64_t ticks_missed = 0;
  double rate_hz = 0;           // asked for at the moment
  Nanoseconds cpu = 0;          // of this thread
  Nanoseconds target_time = 0;  // taken from the target
  Way way = Way::automatic;     // as asked for
  SchedulingClass scheduling = SchedulingClass::ordinary;
  bool schedstat_off = false;
  std::optional<NativeSource> native;
  EventNumbers events;  // of `native`
  bool process_gone = false;
  ProcessSampler::Stateless stateless;
  uint64_t by_perf = 0, by_clock = 0;  // wake-ups
  uint64_t rests = 0;                  // for the program to get its half of the time
};

class Source {
 public:
  virtual ~Source() = default;

  // Looks no more; what was seen is in the ring then.
  virtual void stop() = 0;
  virtual SourceNumbers numbers() = 0;
  // Its process has ended: waits a moment for the last that is said of it.
  virtual void await_end() {}
  // Of its process, when that has ended: when that was, and what its first thread had used; none: it is not
  // known here.
  virtual std::optional<KernelSource::End> end() const { return {}; }
  // How often numbers() have become other ones.
  virtual uint64_t published() const = 0;
  // `threads`: kernel ids of those that are looked at.
  virtual void stay_above(std::span<const pid_t> threads) = 0;
};

}  // namespace phlox::sampler
