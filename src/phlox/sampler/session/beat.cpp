#include "phlox/sampler/session/beat.h"

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

Beat::Beat(double rate_hz, std::function<void(Nanoseconds now)> task)
    : interval_(static_cast<Nanoseconds>(1e9 / rate_hz)), task_(std::move(task)) {}

Beat::Place::Place(int at, Nanoseconds interval)
    : cpu(at), schedule(interval, static_cast<uint64_t>(clock_now(CLOCK_REALTIME))) {}

Beat::Place& Beat::join(int cpu) {
  const std::lock_guard lock(mutex_);
  for (const auto& place : places_) {
    if (place->cpu != cpu) continue;
    const std::lock_guard its(place->mutex);
    if (place->seats == kMostSeats) continue;
    ++place->seats;
    return *place;
  }
  Place& place = *places_.emplace_back(std::make_unique<Place>(cpu, interval_));
  place.seats = 1;
  return place;
}

void Beat::Seat::leave() {
  if (place_ == nullptr) return;
  const std::lock_guard lock(place_->mutex);
  // The timer re-arms itself, so it would go on without any thread.
  if (--place_->seats == 0) place_->timer.reset();
  place_ = nullptr;
}

// Holding the lock, which is released and taken again. No thread is woken during a sample: the waiting
// threads are woken before the leader samples, and run on this CPU when it sleeps.
Nanoseconds Beat::lead(Place& place, std::unique_lock<std::mutex>& lock) {
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
  place.beats.fetch_add(1, std::memory_order_release);
  if (place.waiting > 0) wake_all(place.beats);
  return now;
}

Beat::Woken Beat::Seat::wait(int cpu) {
  if (place_ != nullptr && place_->cpu != cpu) leave();
  const bool is_new = place_ == nullptr;
  if (is_new) place_ = &beat_.join(cpu);
  Place& place = *place_;
  std::unique_lock lock(place.mutex);
  if (is_new) {
    beats_ = place.beats;
    missed_ = place.missed;
  }
  Woken woken;
  const bool leads = !place.is_led;
  if (leads) {
    woken.at = beat_.lead(place, lock);
  } else {
    const uint32_t seen = place.beats;
    ++place.waiting;
    lock.unlock();
    wait_while(place.beats, seen);
    woken.at = clock_now();
    lock.lock();
    --place.waiting;
  }
  // Moments that passed while it sampled, and those at which no thread was woken.
  const uint32_t beats = place.beats - std::exchange(beats_, place.beats.load());
  woken.missed = (beats > 0 ? beats - 1 : 0) + (place.missed - std::exchange(missed_, place.missed));
  woken.by_perf = place.by_perf;
  lock.unlock();
  if (leads && beat_.task_) beat_.task_(woken.at);
  return woken;
}

}  // namespace phlox::sampler
