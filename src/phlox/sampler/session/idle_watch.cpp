#include "phlox/sampler/session/idle_watch.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "phlox/sampler/capture/schedule.h"
#include "phlox/sampler/session/scheduling.h"

namespace phlox::sampler {
namespace {

// Those that began to rest together do not say together that they still do: so many at one moment, one of a
// few of all.
constexpr size_t kShareAtOnce = 16;

}  // namespace

IdleWatch::IdleWatch(double rate_hz) : interval_(static_cast<Nanoseconds>(1e9 / rate_hz)) {
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

IdleWatch::Rest IdleWatch::rest(const target::ProcessClock& clock, Nanoseconds used, Nanoseconds interval,
                                const std::atomic<bool>& stop) {
  Sleeper sleeper{stop};
  const Nanoseconds now = clock_now();
  std::unique_lock lock(mutex_);
  resting_.push_back({clock, used, std::max(interval, interval_), now + longest_rest(resting_.size() + 1),
                      now, now, 0, &sleeper});
  if (resting_.size() == 1) changed_.notify_one();
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

// Holding the lock. The last one takes its place.
void IdleWatch::end(size_t index, bool ran) {
  const Entry& one = resting_[index];
  Sleeper& sleeper = *one.sleeper;
  sleeper.rest = {ran, one.looks, one.still_at};
  sleeper.over = true;
  sleeper.woken.notify_one();
  resting_[index] = resting_.back();
  resting_.pop_back();
}

// Holding the lock.
void IdleWatch::look(Nanoseconds now) {
  size_t may_end = 1 + resting_.size() / kShareAtOnce;
  for (size_t i = resting_.size(); i-- > 0;) {
    Entry& one = resting_[i];
    // Half of the time between two moments that lie as close as they can.
    if (now - one.asked < one.interval / 4) continue;
    one.asked = now;
    if (one.clock.used() != one.used) {
      end(i, true);
      continue;
    }
    ++one.looks;
    one.still_at = now;
    if (now < one.until || may_end == 0) continue;
    --may_end;
    end(i, false);
  }
}

void IdleWatch::run() {
  ::pthread_setname_np(::pthread_self(), "phlox-idle");
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  take_best_class();
  Schedule schedule(interval_, static_cast<uint64_t>(clock_now(CLOCK_REALTIME)));
  schedule.start(clock_now());
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (resting_.empty()) {
      changed_.wait(lock, [this] { return stop_ || !resting_.empty(); });
      schedule.start(clock_now());
      continue;
    }
    // The epoch of steady_clock is that of CLOCK_MONOTONIC.
    const std::chrono::steady_clock::time_point next(std::chrono::nanoseconds(schedule.next(clock_now())));
    if (!changed_.wait_until(lock, next, [this] { return stop_; })) look(clock_now());
  }
}

}  // namespace phlox::sampler
