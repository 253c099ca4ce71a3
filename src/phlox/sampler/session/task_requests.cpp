#include "phlox/sampler/session/task_requests.h"

#include <algorithm>
#include <utility>

namespace phlox::sampler {
namespace {

// CPU time of a running thread is known up to its last tick (CONFIG_HZ=100), so what is known of a program
// that "has not run" is known up to then.
constexpr Nanoseconds kTick = 10'000'000;
// A task that a program always changes while it is read.
constexpr uint32_t kMostMissed = 50;

// An incomplete census does not show that a task is not there. A census without any task may not have found
// the list of tasks.
bool is_complete(const python::AsyncTasks& tasks) {
  return tasks.unproved == 0 && tasks.beyond == 0 && tasks.problem.empty() && !tasks.tasks.empty();
}

}  // namespace

void TaskRequests::add_part(Visit& visit, profile::TaskTimeId time, bool awaited, Nanoseconds duration) {
  auto part = std::find_if(visit.parts.begin(), visit.parts.end(),
                           [&](const Part& one) { return one.time == time && one.awaited == awaited; });
  if (part == visit.parts.end()) {
    if (visit.parts.size() >= kMostPartsFollowed) return;
    part = visit.parts.insert(part, {time, awaited});
  }
  part->duration += duration;
  ++part->tasks;
}

// Of its task, and of all that this one waits for.
void TaskRequests::add_parts(Visit& visit, const python::AsyncTasks& tasks, uint32_t task,
                             const std::vector<profile::TaskTimeId>& times, Nanoseconds time) {
  add_part(visit, times[task], false, time);
  if (tasks.tasks[task].awaits.empty()) return;
  std::vector<uint32_t> awaited = {task};
  std::unordered_set<uint32_t> met = {task};
  for (size_t at = 0; at < awaited.size(); ++at) {
    for (const uint32_t next : tasks.tasks[awaited[at]].awaits) {
      if (met.size() > kMostAwaited || awaited_left_ == 0) return;
      if (next >= times.size() || !met.insert(next).second) continue;
      --awaited_left_;
      awaited.push_back(next);
      add_part(visit, times[next], true, time);
    }
  }
}

// nullptr: there are too many.
TaskRequests::Visit* TaskRequests::find(const python::AsyncTask& task, profile::EventLoopId loop,
                                        const Moment& moment) {
  if (visits_.size() >= kMostFollowed && !visits_.contains(task.address.value)) return nullptr;
  Visit& visit = visits_[task.address.value];
  const Nanoseconds end = moment.begin + moment.took;
  if (visit.number != task.request) {
    const Nanoseconds gone = visit.absent.value_or(end);
    finish(std::exchange(visit, {}), gone);
    visit.number = task.request;
    visit.row.loop = loop;
    visit.row.earliest_begin = last_complete_;
    visit.row.latest_begin = end;
  }
  visit.row.earliest_end = moment.begin;
  ++visit.row.seen;
  visit.missed = 0;
  visit.absent.reset();
  visit.has_changed = true;
  return &visit;
}

void TaskRequests::add(const python::AsyncTasks& tasks, const std::vector<profile::EventLoopId>& loops,
                       const std::vector<profile::TaskTimeId>& times, const Moment& moment) {
  const Nanoseconds of_last = moment.weight / 2;
  awaited_left_ = kMostAwaitedInAll;
  for (auto& [address, visit] : visits_) {
    ++visit.missed;
    for (Part& part : visit.parts)
      part.duration += static_cast<Nanoseconds>(std::exchange(part.tasks, 0)) * of_last;
  }
  for (uint32_t i = 0; i < tasks.tasks.size(); ++i) {
    const python::AsyncTask& task = tasks.tasks[i];
    if (task.request == 0) continue;
    if (Visit* const visit = find(task, loops[task.loop], moment))
      add_parts(*visit, tasks, i, times, moment.weight - of_last);
  }
  was_complete_ = is_complete(tasks);
  end_missed(moment.begin + moment.took, was_complete_);
  if (was_complete_) last_complete_ = moment.begin;
}

// A census may miss a task without knowing it, but not two of them in a row.
void TaskRequests::end_missed(Nanoseconds now, bool is_complete) {
  for (auto at = visits_.begin(); at != visits_.end();) {
    Visit& visit = at->second;
    if (visit.missed > 0 && is_complete && !visit.absent) visit.absent = now;
    if (visit.missed < 2 || (!visit.absent && visit.missed < kMostMissed)) {
      ++at;
      continue;
    }
    const auto absent = visit.absent;
    finish(std::exchange(visit, {}), absent);
    at = visits_.erase(at);
  }
}

// `visit` is no longer in visits_.
void TaskRequests::finish(Visit visit, std::optional<Nanoseconds> latest_end) {
  if (visit.row.seen < 2) return;
  visit.row.latest_end = latest_end;
  visit.has_changed = true;
  ended_.push_back(std::move(visit));
  if (ended_.size() >= 4 * kMostRequests) longest();
}

void TaskRequests::add_again(Nanoseconds now, Nanoseconds weight) {
  for (auto& [address, visit] : visits_) {
    if (visit.missed > 0) continue;
    for (Part& part : visit.parts) part.duration += static_cast<Nanoseconds>(part.tasks) * weight;
    visit.row.earliest_end = std::max(visit.row.earliest_end, now - kTick);
    ++visit.row.seen;
    visit.has_changed = true;
  }
  if (was_complete_) last_complete_ = std::max(*last_complete_, now - kTick);
}

void TaskRequests::end(Nanoseconds now) {
  for (auto& [address, visit] : visits_) {
    const Nanoseconds gone = visit.absent.value_or(now);
    finish(std::exchange(visit, {}), gone);
  }
  visits_.clear();
}

// The others that have ended are forgotten.
std::vector<TaskRequests::Visit*> TaskRequests::longest() {
  const auto is_longer = [](const Visit& a, const Visit& b) { return a.row.least() > b.row.least(); };
  std::stable_sort(ended_.begin(), ended_.end(), is_longer);
  while (ended_.size() > kMostRequests) {
    if (const auto slot = ended_.back().slot) free_slots_.push_back(*slot);
    ended_.pop_back();
  }
  std::vector<Visit*> all;
  for (Visit& visit : ended_) all.push_back(&visit);
  for (auto& [address, visit] : visits_) {
    if (visit.row.seen >= 2) all.push_back(&visit);
  }
  std::stable_sort(all.begin(), all.end(), [&](const Visit* a, const Visit* b) { return is_longer(*a, *b); });
  for (size_t i = kMostRequests; i < all.size(); ++i) {
    if (const auto slot = std::exchange(all[i]->slot, {})) free_slots_.push_back(*slot);
  }
  if (all.size() > kMostRequests) all.resize(kMostRequests);
  return all;
}

void TaskRequests::put() {
  for (Visit* visit : longest()) {
    if (!visit->slot) {
      if (free_slots_.empty()) {
        free_slots_.push_back(slots_.size());
        slots_.push_back({profile::RequestId(++ids_.requests), {}});
      }
      visit->slot = free_slots_.back();
      free_slots_.pop_back();
      visit->has_changed = true;
    }
    if (std::exchange(visit->has_changed, false)) put(*visit);
  }
}

void TaskRequests::put(Visit& visit) {
  Slot& slot = slots_[*visit.slot];
  sink_.put_request(slot.id, visit.row);
  std::vector<Part> parts = visit.parts;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.duration > b.duration; });
  std::vector<profile::RequestPart> rows;
  for (const bool awaited : {false, true}) {
    size_t most = kMostParts;
    for (const Part& part : parts) {
      if (part.awaited != awaited || part.duration <= 0) continue;
      if (most-- == 0) break;
      rows.push_back({slot.id, part.time, awaited, part.duration});
    }
  }
  while (slot.parts.size() < rows.size()) slot.parts.push_back(profile::RequestPartId(++ids_.parts));
  rows.resize(slot.parts.size(), {slot.id, {}, false, 0});
  for (size_t i = 0; i < rows.size(); ++i) sink_.put_request_part(slot.parts[i], rows[i]);
}

}  // namespace phlox::sampler
