// Wakes the first worker for the next sample; called by it, without the turn lock. Uses the clock; or, if a
// perf event of a whole CPU may be opened (CAP_PERFMON, or kernel.perf_event_paranoid <= 0) and the sampler
// stays on one CPU, that CPU's own perf clock: its timer re-arms itself, which costs 5 to 9 us a wake-up
// instead of 13 to 18 where arming a timer leaves the virtual machine (`make bench`, "recorder"). Reads
// nothing of the target, and only decides when to wake up.
#pragma once

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/sampler/capture/schedule.h"

namespace phlox::sampler {

class SampleTimer {
 public:
  explicit SampleTimer(bool allow_perf = true) : perf_allowed_(allow_perf) {}
  ~SampleTimer() { close(); }
  SampleTimer(const SampleTimer&) = delete;
  SampleTimer& operator=(const SampleTimer&) = delete;

  // Sleeps until the schedule's next moment. `cpu`: where this thread is pinned; -1: nowhere. Returns the
  // time.
  Nanoseconds wait(Schedule& schedule, Nanoseconds now, int cpu);

  uint64_t by_perf() const { return by_perf_; }
  uint64_t by_clock() const { return by_clock_; }

 private:
  bool open(int cpu, Nanoseconds period);
  void close();
  bool wait_for_event(Schedule& schedule);

  bool perf_allowed_;
  Descriptor event_;
  void* page_ = nullptr;  // perf_event_mmap_page, and the ring's one page behind it
  int cpu_ = -1;          // of the event, or the sampler's last one
  unsigned stays_ = 0;    // samples on that CPU
  int left_ = 0;          // wake-ups until a new period is chosen
  Nanoseconds period_ = 0;
  Nanoseconds due_ = 0;  // when the next period should begin
  unsigned silences_ = 0;
  uint64_t by_perf_ = 0, by_clock_ = 0;
};

void sleep_until(Nanoseconds when);

}  // namespace phlox::sampler
