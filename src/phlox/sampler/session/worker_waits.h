// How a worker waits for its next turn: by a timer, for a perf event, or, while nothing runs in the program,
// for it to run again. Used by one worker, which holds the turn lock (turn_loop.h).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "phlox/base/clock.h"
#include "phlox/process/process_clock.h"
#include "phlox/sampler/capture/process_sampler.h"
#include "phlox/sampler/capture/sample_timer.h"
#include "phlox/sampler/capture/workers.h"
#include "phlox/sampler/session/idle_watch.h"
#include "phlox/sampler/session/shared_timer.h"
#include "phlox/sampler/session/turn_loop.h"

namespace phlox::sampler {

// A timer of its own; or, at that timer's rate, together with the workers of other processes on its CPU.
class TimerWait : public TurnLoop::Waiting {
 public:
  // `timer`: null: only its own.
  TimerWait(const Worker& worker, SharedTimer* timer);
  TurnLoop::Next wait(TurnLoop& loop) override;
  // The worker moves to another CPU, or rests.
  void leave_others();

 private:
  void wait_for_moment(TurnLoop& loop);

  const Worker& worker_;
  std::optional<SharedTimer::Slot> slot_;
  Nanoseconds timer_interval_ = 0;
  SampleTimer alone_;
  uint64_t by_perf_ = 0, by_clock_ = 0;
};

// An event catches a thread on this worker's CPU.
class EventWait : public TurnLoop::Waiting {
 public:
  EventWait(ProcessSampler& sampler, Workers& workers, Worker& worker)
      : sampler_(sampler), workers_(workers), worker_(worker) {}
  TurnLoop::Next wait(TurnLoop& loop) override;

 private:
  ProcessSampler& sampler_;
  Workers& workers_;
  Worker& worker_;
};

// While nothing runs in the program.
class IdleWait : public TurnLoop::Waiting {
 public:
  // `stop`: wakes it, with IdleWatch::wake().
  IdleWait(IdleWatch& watch, ProcessSampler& sampler, Workers& workers, TimerWait& timer, pid_t pid,
           const std::atomic<bool>& stop)
      : watch_(watch), sampler_(sampler), workers_(workers), timer_(timer), clock_(pid), stop_(stop) {}
  // Call it before each turn: the program has not run since if it has used no more CPU time.
  void note(Nanoseconds now);
  TurnLoop::Next wait(TurnLoop& loop) override;

 private:
  IdleWatch& watch_;
  ProcessSampler& sampler_;
  Workers& workers_;
  TimerWait& timer_;
  process::ProcessClock clock_;
  const std::atomic<bool>& stop_;
  std::optional<Nanoseconds> used_;  // its CPU time at the last note; none: a thread had run
  Nanoseconds since_ = 0;            // unchanged since then
  bool is_still_ = false;            // unchanged between the last two notes
};

}  // namespace phlox::sampler
