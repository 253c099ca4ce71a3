#include "phlox/sampler/session/shared_timer.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <utility>

namespace phlox::sampler {
namespace {

void wait_while(const std::atomic<uint32_t>& word, uint32_t value) {
  while (word.load(std::memory_order_acquire) == value)
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake_all(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

SharedTimer::SharedTimer(double rate_hz, std::function<void(Nanoseconds now)> task)
    : interval_(static_cast<Nanoseconds>(1e9 / rate_hz)), task_(std::move(task)) {}

SharedTimer::Place::Place(int at, Nanoseconds interval)
    : cpu(at), schedule(interval, static_cast<uint64_t>(clock_now(CLOCK_REALTIME))) {}

SharedTimer::Place& SharedTimer::join(int cpu) {
  const std::lock_guard lock(mutex_);
  for (const auto& place : places_) {
    if (place->cpu != cpu) continue;
    const std::lock_guard its(place->mutex);
    if (place->slots == kMostSlots) continue;
    ++place->slots;
    return *place;
  }
  Place& place = *places_.emplace_back(std::make_unique<Place>(cpu, interval_));
  place.slots = 1;
  return place;
}

void SharedTimer::Slot::leave() {
  if (place_ == nullptr) return;
  const std::lock_guard lock(place_->mutex);
  // The timer re-arms itself, so it would go on without any thread.
  if (--place_->slots == 0) place_->timer.reset();
  place_ = nullptr;
}

// Holding the lock, which is released and taken again. No thread is woken during a sample: the waiting
// threads are woken before the leader samples, and run on this CPU when it sleeps.
Nanoseconds SharedTimer::lead(Place& place, std::unique_lock<std::mutex>& lock) {
  place.is_led = true;
  if (!place.timer) {
    place.timer.emplace();
    place.schedule.start(clock_now());
  }
  const uint64_t by_perf = place.timer->by_perf();
  lock.unlock();
  const Nanoseconds now = place.timer->wait(place.schedule, clock_now(), place.cpu);
  lock.lock();
  place.by_perf = place.timer->by_perf() != by_perf;
  place.missed = place.schedule.missed();
  place.is_led = false;
  place.ticks.fetch_add(1, std::memory_order_release);
  if (place.waiting > 0) wake_all(place.ticks);
  return now;
}

SharedTimer::Woken SharedTimer::Slot::wait(int cpu) {
  if (place_ != nullptr && place_->cpu != cpu) leave();
  const bool is_new = place_ == nullptr;
  if (is_new) place_ = &timer_.join(cpu);
  Place& place = *place_;
  std::unique_lock lock(place.mutex);
  if (is_new) {
    ticks_ = place.ticks;
    missed_ = place.missed;
  }
  Woken woken;
  const bool leads = !place.is_led;
  if (leads) {
    woken.at = timer_.lead(place, lock);
  } else {
    const uint32_t seen = place.ticks;
    ++place.waiting;
    lock.unlock();
    wait_while(place.ticks, seen);
    woken.at = clock_now();
    lock.lock();
    --place.waiting;
  }
  // Moments that passed while it sampled, and those at which no thread was woken.
  const uint32_t ticks = place.ticks - std::exchange(ticks_, place.ticks.load());
  woken.missed = (ticks > 0 ? ticks - 1 : 0) + (place.missed - std::exchange(missed_, place.missed));
  woken.by_perf = place.by_perf;
  lock.unlock();
  if (leads && timer_.task_) timer_.task_(woken.at);
  return woken;
}

}  // namespace phlox::sampler
