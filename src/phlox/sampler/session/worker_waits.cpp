#include "phlox/sampler/session/worker_waits.h"

#include <utility>

namespace phlox::sampler {

using Next = TurnLoop::Next;

TimerWait::TimerWait(const Worker& worker, SharedTimer* timer) : worker_(worker) {
  if (timer == nullptr) return;
  slot_.emplace(*timer);
  timer_interval_ = timer->interval();
}

Next TimerWait::wait(TurnLoop& loop) {
  // Without a rate, the rest after each turn is the only pause.
  const bool has_rate = loop.numbers().rate_hz > 0;
  loop.lock().unlock();
  if (has_rate) wait_for_moment(loop);
  loop.lock().lock();
  loop.numbers().by_perf = by_perf_ + alone_.by_perf();
  loop.numbers().by_clock = by_clock_ + alone_.by_clock();
  return Next::turn;
}

void TimerWait::wait_for_moment(TurnLoop& loop) {
  if (!slot_ || worker_.cpu < 0 || loop.schedule().interval() != timer_interval_) {
    leave_others();
    alone_.wait(loop.schedule(), loop.now(), worker_.cpu);
    return;
  }
  const SharedTimer::Woken woken = slot_->wait(worker_.cpu);
  loop.schedule().start(woken.at);
  loop.schedule().missed_more(woken.missed);
  ++(woken.by_perf ? by_perf_ : by_clock_);
}

void TimerWait::leave_others() {
  if (slot_) slot_->leave();
}

Next EventWait::wait(TurnLoop& loop) {
  const Woken woken = sampler_.wait_for_event(worker_, loop.events_apart(), loop.lock());
  if (woken == Woken::nothing_to_wait_for) return Next::another_way;
  const Nanoseconds now = loop.now();
  if (woken == Woken::by_event) {
    loop.schedule().start(now);
    return Next::turn;
  }
  if (worker_.events_only) return Next::no_turn;
  workers_.end_round(worker_);
  loop.schedule().start(now);
  // If no thread is caught: once an interval, whichever worker's turn it was.
  return sampler_.rested(now) > loop.schedule().interval() / 2 ? Next::turn : Next::no_turn;
}

void IdleWait::note(Nanoseconds now) {
  is_still_ = false;
  if (sampler_.any_ran()) return used_.reset();
  const auto before = std::exchange(used_, clock_.used());
  is_still_ = used_ && used_ == before;
  if (!is_still_) since_ = now;
}

Next IdleWait::wait(TurnLoop& loop) {
  if (!is_still_ || !sampler_.all_blocked_since(since_)) return Next::another_way;
  timer_.leave_others();
  for (bool ran = false; !ran && !stop_.load();) {
    loop.lock().unlock();
    const auto rest = watch_.rest(clock_, *used_, loop.schedule().interval(), stop_);
    loop.lock().lock();
    ran = rest.ran;
    if (rest.checks == 0) continue;
    sampler_.stood_still(rest.still_at, workers_.skip_rounds(rest.checks));
    loop.publish_when_due(rest.still_at);
  }
  loop.schedule().start(loop.now());
  return Next::turn;
}

}  // namespace phlox::sampler
