#include "phlox/sampler/session/idle_watch.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "phlox/base/side_thread.h"
#include "phlox/sampler/capture/schedule.h"
#include "phlox/sampler/session/scheduling.h"

namespace phlox::sampler {
namespace {

// Threads that began to rest together must not all report at once that they still rest: at one moment only
// one in this many does.
constexpr size_t kShareAtOnce = 16;

}  // namespace

IdleWatch::IdleWatch(double rate_hz)
    : interval_(static_cast<Nanoseconds>(1e9 / rate_hz)),
      schedule_(interval_, static_cast<uint64_t>(clock_now(CLOCK_REALTIME))) {
  thread_ = std::thread([this] { run(); });
}

IdleWatch::~IdleWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

IdleWatch::Rest IdleWatch::rest(const process::ProcessClock& clock, Nanoseconds used, Nanoseconds interval,
                                const std::atomic<bool>& stop) {
  Sleeper sleeper{stop};
  const Nanoseconds now = clock_now();
  std::unique_lock lock(mutex_);
  resting_.push_back({clock, used, std::max(interval, interval_), now + longest_rest(resting_.size() + 1),
                      now, now, 0, &sleeper});
  // The helper may be the thread that rests.
  if (resting_.size() == 1 || std::exchange(is_helped_, false)) changed_.notify_one();
  sleeper.woken.wait(lock, [&] { return sleeper.over || stop.load(); });
  if (!sleeper.over) {
    const auto at = std::find_if(resting_.begin(), resting_.end(),
                                 [&sleeper](const Entry& one) { return one.sleeper == &sleeper; });
    end(static_cast<size_t>(at - resting_.begin()), false);
  }
  return sleeper.rest;
}

void IdleWatch::wake() {
  const std::lock_guard lock(mutex_);
  for (const Entry& one : resting_) {
    if (one.sleeper->stop.load()) one.sleeper->woken.notify_one();
  }
}

// Holding the lock. The last entry takes its place.
void IdleWatch::end(size_t index, bool ran) {
  const Entry& one = resting_[index];
  Sleeper& sleeper = *one.sleeper;
  sleeper.rest = {ran, one.checks, one.still_at};
  sleeper.over = true;
  sleeper.woken.notify_one();
  resting_[index] = resting_.back();
  resting_.pop_back();
}

// Holding the lock.
void IdleWatch::check(Nanoseconds now) {
  checked_at_ = now;
  size_t may_end = 1 + resting_.size() / kShareAtOnce;
  for (size_t i = resting_.size(); i-- > 0;) {
    Entry& one = resting_[i];
    // Half of the shortest time between two moments.
    if (now - one.asked < one.interval / 4) continue;
    one.asked = now;
    if (one.clock.used() != one.used) {
      end(i, true);
      continue;
    }
    ++one.checks;
    one.still_at = now;
    if (now < one.until || may_end == 0) continue;
    --may_end;
    end(i, false);
  }
}

void IdleWatch::help(Nanoseconds now) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || resting_.empty() || now - checked_at_ < interval_ * 3 / 4) return;
  is_helped_ = true;
  check(now);
}

// Holding the lock.
Nanoseconds IdleWatch::next_check() {
  if (!is_helped_) return schedule_.next(clock_now());
  schedule_.start(checked_at_);
  return checked_at_ + kPatience * interval_;
}

void IdleWatch::run() {
  const SideThread side;
  ::pthread_setname_np(::pthread_self(), "phlox-idle");
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  take_best_class();
  std::unique_lock lock(mutex_);
  schedule_.start(clock_now());
  while (!stop_) {
    if (resting_.empty()) {
      changed_.wait(lock, [this] { return stop_ || !resting_.empty(); });
      schedule_.start(clock_now());
      continue;
    }
    // The epoch of steady_clock is that of CLOCK_MONOTONIC.
    const bool was_helped = is_helped_;
    const std::chrono::steady_clock::time_point next{std::chrono::nanoseconds(next_check())};
    if (changed_.wait_until(lock, next, [&] { return stop_ || is_helped_ != was_helped; })) continue;
    const Nanoseconds now = clock_now();
    if (is_helped_ && now - checked_at_ < interval_ * kPatience) continue;
    is_helped_ = false;
    check(now);
  }
}

}  // namespace phlox::sampler
