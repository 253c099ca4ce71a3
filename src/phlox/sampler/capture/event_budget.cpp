#include "phlox/sampler/capture/event_budget.h"

#include <algorithm>

namespace phlox::sampler {
namespace {

// Polling more events than this takes longer than a sample.
constexpr size_t kMostEvents = 256;

}  // namespace

EventBudget::Grant EventBudget::ask(pid_t tid, Nanoseconds now) {
  if (held_.contains(tid)) return {};
  if (held_.size() < most_) {
    without_.erase(tid);
    return {true, 0};
  }
  Waiting& waiting = without_.try_emplace(tid, Waiting{now, now}).first->second;
  waiting.asked = now;
  if (now - pace_start_ >= kPace) next_pace(now);
  if (now < none_before_ || changes_ == kChangesInPace || waiting.since > waiting_since_ || most_ == 0)
    return {};
  const auto free_at = [](const Held& held) { return std::min(held.ran + kSpare, held.since + kTurn); };
  auto first = held_.begin();
  for (auto at = held_.begin(); at != held_.end(); ++at) {
    if (free_at(at->second) < free_at(first->second)) first = at;
  }
  if (free_at(first->second) > now) {
    none_before_ = free_at(first->second);
    return {};
  }
  const pid_t given = first->first;
  held_.erase(first);
  without_.erase(tid);
  ++changes_;
  return {true, given};
}

// As many as may change now, longest waiting first.
void EventBudget::next_pace(Nanoseconds now) {
  std::vector<Nanoseconds> since;
  for (const auto& [tid, waiting] : without_) {
    if (now - waiting.asked < kPace) since.push_back(waiting.since);
  }
  pace_start_ = now;
  changes_ = 0;
  waiting_since_ = std::numeric_limits<Nanoseconds>::max();
  if (since.size() <= kChangesInPace) return;
  const auto last = since.begin() + (kChangesInPace - 1);
  std::nth_element(since.begin(), last, since.end());
  waiting_since_ = *last;
}

void EventBudget::opened(pid_t tid, Nanoseconds now) {
  held_[tid] = {now, now};
}

void EventBudget::ran(pid_t tid, Nanoseconds now) {
  if (const auto found = held_.find(tid); found != held_.end()) found->second.ran = now;
}

std::vector<pid_t> EventBudget::take_idle(Nanoseconds now) {
  std::vector<pid_t> idle;
  for (const auto& [tid, held] : held_) {
    if (now - held.ran >= kIdle) idle.push_back(tid);
  }
  for (const pid_t tid : idle) held_.erase(tid);
  std::erase_if(without_, [now](const auto& one) { return now - one.second.asked >= kIdle; });
  return idle;
}

size_t most_events(uint64_t descriptors, uint64_t mlock_kb, uint64_t cpus, uint64_t memlock_bytes,
                   uint64_t each) {
  const uint64_t by_descriptors = descriptors / 4;  // the rest is for /proc: three per thread
  // Half of what all of the user's events may lock.
  const uint64_t locked =
      std::min<uint64_t>(mlock_kb, uint64_t{1} << 30) * 1024 * std::clamp<uint64_t>(cpus, 1, 8192);
  const uint64_t by_memory = (locked + std::min<uint64_t>(memlock_bytes, uint64_t{1} << 40)) / 2 / each;
  return std::min<uint64_t>({by_descriptors, by_memory, kMostEvents});
}

}  // namespace phlox::sampler
