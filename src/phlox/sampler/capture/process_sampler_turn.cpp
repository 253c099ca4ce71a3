// ProcessSampler's turn: which threads it samples, and in which order.
#include <algorithm>
#include <utility>

#include "phlox/sampler/capture/native_half.h"
#include "phlox/sampler/capture/native_threads.h"
#include "phlox/sampler/capture/process_sampler.h"
#include "phlox/sampler/capture/schedule.h"

namespace phlox::sampler {
namespace {

constexpr size_t kThreadsPerTurn = 64;
// With fewer threads than this, each is checked in every turn.
constexpr size_t kFewThreads = 32;
// Between samples, an interpreter can be ended and restarted, and its count of code objects with it.
constexpr Nanoseconds kEpochsLast = kSecond / 10;

}  // namespace

void ProcessSampler::pause_idle(PythonThread& slot) {
  slot.next_tick = tick_ + (threads_.all().size() > kFewThreads
                                ? idle_pause_in_crowd(slot.idle_samples, config_.interval)
                                : idle_pause(slot.idle_samples, native_ ? native_->longest_pause() : 1));
}

// Threads outside of Python have no stack. What they do there must not be charged to what they do in Python
// later. A thread that came back in this turn has been sampled, for the time since the turn before.
void ProcessSampler::sample_resting(Nanoseconds now) {
  for (auto& slot : threads_.all()) {
    if (!slot->alive || slot->tstate || slot->next_tick > tick_) continue;
    const auto stat = slot->probe->schedstat();
    if (!stat) {
      slot->alive = false;
      continue;
    }
    slot->idle_samples = unmoved(slot->seen, *stat) ? slot->idle_samples + 1 : 0;
    pause_idle(*slot);
    slot->seen = *stat;
    slot->last_time = now;
  }
}

// Of many threads, few move in a turn: the pages of the others are not copied.
void ProcessSampler::note_who_moved() {
  moved_.clear();
  if (native_ || threads_.all().size() <= kFewThreads) return;
  for (const auto& slot : threads_.all()) {
    if (!slot->done && !(slot->first_valid && slot->has_slept_on(slot->first))) moved_.push_back(slot->index);
  }
  moved_.push_back(Snapshot::kEverybody);
}

void ProcessSampler::capture_for(Snapshot::Reader reader, RemoteAddress last) {
  if (moved_.empty()) return snapshot_.capture(last);
  moved_.back() = reader;
  snapshot_.capture_for(moved_, last);
}

// The thread that this turn's event caught, until it is sampled.
PythonThread* ProcessSampler::caught() {
  const auto found = std::find_if(threads_.all().begin(), threads_.all().end(), [](const auto& slot) {
    return slot->alive && !slot->done && slot->event.kind == EventState::Kind::preempted;
  });
  return found == threads_.all().end() ? nullptr : found->get();
}

ProcessSampler::Holder ProcessSampler::read_holders(Nanoseconds now, bool again) {
  for (auto& domain : threads_.domains()) domain.threads = 0;
  for (const auto& slot : threads_.all()) ++threads_.domains()[slot->domain].threads;
  Holder any = Holder::known;
  for (auto& domain : threads_.domains()) {
    if (again && domain.runner != nullptr && domain.runner->done) continue;
    domain.frozen = nullptr;
    if (read_holder(domain, now) == Holder::fresh) any = Holder::fresh;
  }
  return any;
}

// If there are many threads, a turn samples only some: first those that use CPU time, then the others in
// rotation.
std::vector<PythonThread*> ProcessSampler::order_of_turn() const {
  const size_t threads = threads_.all().size();
  std::vector<PythonThread*> order;
  order.reserve(threads);
  for (const bool busy : {true, false}) {
    for (size_t i = 0; i < threads; ++i) {
      PythonThread* slot = threads_.all()[(first_slot_ + i) % threads].get();
      if (slot->uses_cpu == busy) order.push_back(slot);
    }
  }
  return order;
}

// Reads the other threads' counts first: a thread found blocked later with the same count did not run while
// the memory was copied.
void ProcessSampler::ask_others(Nanoseconds now) {
  for (auto& slot : threads_.all()) {
    slot->first_valid = false;
    slot->event = {};
    slot->done = slot->next_tick > tick_ || seen_lately(*slot, now);
    if (slot->done) continue;
    if (native_) ask_event(*slot, now);
    if (!slot->tstate && !native_) slot->done = true;
  }
  size_t asked = 0;
  for (PythonThread* each : order_of_turn()) {
    PythonThread& slot = *each;
    if (slot.done || (threads_.domains()[slot.domain].runner == &slot && !by_event())) continue;
    if (slot.event.kind != EventState::Kind::preempted && ++asked > kThreadsPerTurn && !config_.once) {
      slot.done = true;  // for this turn
      continue;
    }
    if (const auto stat = slot.probe->schedstat()) {
      slot.first = *stat;
      slot.first_valid = true;
    } else {
      threads_.has_ended(slot);
    }
  }
  note_who_moved();
}

// Threads of Rust or C++ have thread states as short-lived as their calls into Python: the thread that the
// event caught is in the list of this copy, or is not in Python. False: no event came and no thread has gone
// to sleep since, so there is nothing to copy.
bool ProcessSampler::copy_for_event(Nanoseconds now) {
  if (!threads_.due(now) && !threads_.all().empty() &&
      std::all_of(threads_.all().begin(), threads_.all().end(), [](const auto& slot) { return slot->done; }))
    return false;
  if (PythonThread* slot = caught()) {
    snapshot_.capture_for(slot->index, stack_of(*slot, slot->event.sp));
  } else {
    snapshot_.capture_for(Snapshot::kEverybody);
  }
  if (threads_.due(now) || threads_.changed()) threads_.refresh(now, PythonThreads::From::copy);
  return true;
}

void ProcessSampler::read_others(Nanoseconds now) {
  // From the copy that was made for it; the others have their own copies.
  if (PythonThread* slot = by_event() ? caught() : nullptr) read_other(*slot, now);
  const size_t threads = threads_.all().size();
  size_t next_first = first_slot_ + kThreadsPerTurn;
  // A dump of thousands of threads takes as long for the stacks as for the counts of all of them.
  const Nanoseconds longest = std::max(config_.longest_turn, config_.once ? 2 * (clock_now() - now) : 0);
  size_t seen = 0, others = 0;
  for (PythonThread* slot : order_of_turn()) {
    if (!slot->done && slot->alive) {
      if (seen > 0 && seen % 8 == 0 && clock_now() - now > longest) {
        next_first = first_slot_ + others;
        break;
      }
      ++seen;
      read_other(*slot, now);
    }
    others += slot->uses_cpu ? 0 : 1;
  }
  first_slot_ = threads > 0 ? next_first % threads : 0;
}

void ProcessSampler::turn(Nanoseconds now, uint64_t round) {
  counts_.ticks = tick_ = round;
  last_turns_sample_ = snapshot_.sample_number();
  if (now - std::exchange(last_turn_, now) > kEpochsLast) reader_.codes().forget_epochs();
  if (!by_event() && threads_.due(now)) threads_.refresh(now, PythonThreads::From::target);
  if (threads_.all().size() > kThreadsPerTurn && !config_.once) threads_.note_busy();
  ask_others(now);
  if (by_event() && !copy_for_event(now)) {
    sample_native_threads(now);
    return;
  }
  if (read_holders(now, false) == Holder::fresh && !by_event()) {
    // If new states were found only in the next turn, a thread that calls into Python briefly would be seen
    // only where two turns meet two calls.
    threads_.refresh(now, PythonThreads::From::target);
    read_holders(now, true);
  }
  if (!threads_.domains().empty() && threads_.changed()) threads_.want_refresh();
  read_others(now);
  if (!native_) sample_resting(now);
  if (std::any_of(threads_.all().begin(), threads_.all().end(),
                  [](const auto& slot) { return !slot->alive; }))
    threads_.drop_dead(now);
  if (native_threads_) sample_native_threads(now);
  counts_.follow_ups += snapshot_.follow_ups();
}

bool ProcessSampler::any_ran() const {
  return std::any_of(threads_.all().begin(), threads_.all().end(), [](const auto& slot) {
    return slot->alive && slot->tstate && !(slot->has_stack && slot->was_blocked);
  });
}

bool ProcessSampler::all_blocked_since(Nanoseconds since) {
  if (native_ || threads_.all().empty() || threads_.due(last_turn_)) return false;
  bool all = true;
  for (auto& slot : threads_.all()) {
    if (!slot->alive || (slot->tstate && !(slot->has_stack && slot->was_blocked))) return false;
    if (slot->last_time >= since) continue;
    slot->next_tick = 0;
    all = false;
  }
  return all;
}

void ProcessSampler::stood_still(Nanoseconds now, uint64_t round) {
  counts_.ticks = tick_ = round;
  for (auto& slot : threads_.all()) {
    if (slot->tstate) {
      did_not_run(*slot, slot->seen, now);
    } else {
      slot->last_time = now;
    }
  }
}

}  // namespace phlox::sampler
