#include "phlox/sampler/session/turn_loop.h"

#include <algorithm>
#include <utility>

namespace phlox::sampler {
namespace {

// What a wake-up costs the target besides our own CPU time: the timer interrupt and the switch to our thread,
// measured against the throughput of a target that never sleeps (docs/decisions/0001).
constexpr Nanoseconds kWakeUp = 2'500;
// No option overrides this: after a turn, the program has its CPU for as long as the turn took, plus what it
// loses by cold caches and by arming a timer in a virtual machine (sample_timer.h).
constexpr Nanoseconds kColdStart = 15'000;
constexpr Nanoseconds kPublishEvery = kSecond / 20;
// Turns between two readings of our own CPU clock, which take 0.5 us each.
constexpr int64_t kMeasureEvery = 8;

}  // namespace

void TurnLoop::run(Turns& turns, const std::vector<Waiting*>& ways, Next next,
                   const std::atomic<bool>& stop) {
  Cost cost{.before = host_.read_clock(CLOCK_THREAD_CPUTIME_ID)};
  lock_.lock();
  for (Nanoseconds now = host_.now(); next != Next::another_way && !stop.load(); now = host_.now()) {
    if (next == Next::turn) take_turn(turns, now, cost);
    if (turns.is_gone()) break;
    leave_its_half(cost);
    if (stop.load()) break;
    next = Next::another_way;
    for (auto way = ways.begin(); way != ways.end() && next == Next::another_way; ++way)
      next = (*way)->wait(*this);
  }
  turns.finish();
  measure(turns, cost);
  lock_.unlock();
}

void TurnLoop::take_turn(Turns& turns, Nanoseconds woken, Cost& cost) {
  turns.take(woken);
  const Nanoseconds now = host_.now();
  // After shorter turns, the schedule leaves the program more than that.
  const bool is_long = 2 * (now - woken + kColdStart) > schedule_.interval();
  if (++cost.turns == kMeasureEvery || is_long) {
    const Nanoseconds taken = measure(turns, cost);
    if (is_long) cost.owed = taken + kColdStart;
    events_apart_ = std::max(2 * cost.owed, events_apart_ / 8 * 7);
    cost.owed = std::max(cost.owed, budget_.rest(now, numbers_.target_time));
  }
  if (const auto rate = budget_.judge(now, numbers_.target_time, numbers_.rate_hz)) {
    numbers_.rate_hz = *rate;
    schedule_.set_interval(static_cast<Nanoseconds>(1e9 / *rate));
  }
  numbers_.ticks_missed = numbers_.rate_hz > 0 ? schedule_.missed() : 0;
  publish_when_due(now);
}

// Since the last measurement.
Nanoseconds TurnLoop::measure(const Turns& turns, Cost& cost) {
  const Nanoseconds cpu = host_.read_clock(CLOCK_THREAD_CPUTIME_ID);
  const Nanoseconds used = cpu - std::exchange(cost.before, cpu);
  const Nanoseconds stopped = turns.stopped();
  const Nanoseconds taken =
      used + std::exchange(cost.turns, 0) * kWakeUp + stopped - std::exchange(stopped_, stopped);
  numbers_.target_time += taken;
  numbers_.cpu += used;
  return taken;
}

// Holding the turn lock, which is released and taken again.
void TurnLoop::leave_its_half(Cost& cost) {
  if (cost.owed == 0) return;
  const bool is_long = cost.owed > schedule_.interval();
  const Nanoseconds until = host_.now() + std::exchange(cost.owed, 0);
  ++numbers_.rests;
  lock_.unlock();
  host_.sleep_until(until);
  lock_.lock();
  // Samples for which the budget has no room do not count as missed.
  if (is_long) schedule_.start(until);
}

void TurnLoop::publish_when_due(Nanoseconds now) {
  if (now - published_ <= kPublishEvery) return;
  published_ = now;
  publish_(numbers_);
}

}  // namespace phlox::sampler
