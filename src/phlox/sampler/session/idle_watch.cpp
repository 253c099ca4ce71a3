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
  Resting one{clock, used, std::max(interval, interval_), stop};
  one.asked = clock_now();
  one.until = one.asked + kLongestRest;
  one.rest.still_at = one.asked;
  std::unique_lock lock(mutex_);
  const auto at = resting_.insert(resting_.end(), &one);
  if (resting_.size() == 1) changed_.notify_one();
  one.woken.wait(lock, [&] { return one.over || stop.load(); });
  resting_.erase(at);
  return one.rest;
}

void IdleWatch::wake() {
  const std::lock_guard lock(mutex_);
  for (Resting* one : resting_) {
    if (one->stop.load()) one->woken.notify_one();
  }
}

// Holding the lock.
void IdleWatch::look(Nanoseconds now) {
  size_t may_end = 1 + resting_.size() / kShareAtOnce;
  for (Resting* one : resting_) {
    // Half of the time between two moments that lie as close as they can.
    if (one->over || now - one->asked < one->interval / 4) continue;
    one->asked = now;
    if (one->clock.used() != one->used) {
      one->rest.ran = one->over = true;
    } else {
      ++one->rest.looks;
      one->rest.still_at = now;
      one->over = now >= one->until && may_end > 0;
      if (one->over) --may_end;
    }
    if (one->over) one->woken.notify_one();
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
