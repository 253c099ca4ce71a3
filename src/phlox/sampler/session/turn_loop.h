// When a program is sampled: one turn after the other, at the moments of a schedule, at the rate that the
// budget allows. It measures what the turns cost the program, and leaves the program its CPU for at least as
// long as a turn took. Each worker (workers.h) runs the loop for its own turns; all else here is shared by
// them, and used by the holder of the turn lock. Does not know what a turn does, how a worker waits for the
// next one, or the clock: tests play them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/sampler/capture/schedule.h"
#include "phlox/sampler/capture/workers.h"
#include "phlox/sampler/observe/sample_source.h"
#include "phlox/sampler/session/budget.h"
#include "phlox/sampler/session/host.h"

namespace phlox::sampler {

class TurnLoop {
 public:
  // One worker's turns. Called with the turn lock.
  class Turns {
   public:
    virtual ~Turns() = default;
    virtual void take(Nanoseconds now) = 0;
    // Whether the program has ended, so that there is nothing to sample.
    virtual bool is_gone() const = 0;
    // How long the program's threads were stopped, since the beginning.
    virtual Nanoseconds stopped() const = 0;
    // After the last one. May give the turn lock back meanwhile.
    virtual void finish() = 0;
  };
  // After a wait. another_way: this way of waiting is not possible now, and it has not waited.
  enum class Next : uint8_t { turn, no_turn, another_way };
  // One way in which a worker waits for its next turn. Called with the turn lock, which it gives back while
  // it waits.
  class Waiting {
   public:
    virtual ~Waiting() = default;
    virtual Next wait(TurnLoop& loop) = 0;
  };
  using Publish = std::function<void(const SourceNumbers& numbers)>;

  // `numbers.rate_hz`: the first one, which the schedule has; 0: without a rate. `publish`: called about 20
  // times a second.
  TurnLoop(Host& host, const Budget& budget, const Schedule& schedule, const SourceNumbers& numbers,
           Publish publish)
      : host_(host), budget_(budget), schedule_(schedule), numbers_(numbers), publish_(std::move(publish)) {
    schedule_.start(host.now());
  }

  // The turns of one worker, until `stop` is set, the program is gone, or no way of waiting is possible: the
  // first possible one is used. `next`: whether it begins with a turn.
  void run(Turns& turns, const std::vector<Waiting*>& ways, Next next, const std::atomic<bool>& stop);

  // --- for the ways of waiting
  TurnLock& lock() { return lock_; }
  Schedule& schedule() { return schedule_; }
  SourceNumbers& numbers() { return numbers_; }
  Nanoseconds now() { return host_.now(); }
  // The shortest time between events: one that comes while the program has its time is useless.
  Nanoseconds events_apart() const { return std::max(schedule_.interval(), events_apart_); }
  void publish_when_due(Nanoseconds now);

 private:
  // The cost of a worker to the program.
  struct Cost {
    Nanoseconds before = 0;  // its CPU time at the last measurement
    int64_t turns = 0;       // how many since then
    Nanoseconds owed = 0;    // the program's time before its next turn
  };
  void take_turn(Turns& turns, Nanoseconds woken, Cost& cost);
  Nanoseconds measure(const Turns& turns, Cost& cost);
  void leave_its_half(Cost& cost);

  Host& host_;
  Budget budget_;
  Schedule schedule_;
  SourceNumbers numbers_;
  Publish publish_;
  TurnLock lock_;
  Nanoseconds published_ = 0;
  Nanoseconds stopped_ = 0;  // as last measured
  Nanoseconds events_apart_ = 0;
};

}  // namespace phlox::sampler
