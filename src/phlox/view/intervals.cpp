#include "phlox/view/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/counters.h"
#include "phlox/profile/web_routes.h"
#include "phlox/view/await_time.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/loop_threads.h"
#include "phlox/view/part.h"
#include "phlox/view/resource.h"
#include "phlox/view/task_endpoints.h"
#include "phlox/view/trace_parts.h"

namespace phlox::view {

using namespace profile;

namespace {

// A program may work for any number of spans. Beyond this, the sums of an interval have none.
constexpr size_t kMostSpans = 10'000;

// Other facts are of the whole recording, and some grow with it.
bool is_kept_fact(std::string_view key) {
  constexpr std::array<std::string_view, 5> kKept = {"host", "container.", "control_group.", kResource,
                                                     kRoutes};
  return std::any_of(kKept.begin(), kKept.end(),
                     [&](std::string_view kept) { return key.starts_with(kept); });
}

}  // namespace

void Intervals::receive(const AnyRow& row) {
  if (const auto* sample = std::get_if<Numbered<SampleId>>(&row)) return add(sample->id, sample->value);
  if (const auto* time = std::get_if<Numbered<TraceTimeId>>(&row)) return add(time->id, time->value);
  if (const auto* meta = std::get_if<Unnumbered<Meta>>(&row)) {
    if (is_kept_fact(meta->value.key)) known_.receive(row);
    return;
  }
  // The others are shown by no profile of an interval, and their number has no limit.
  if (std::holds_alternative<Numbered<ProcessId>>(row) || std::holds_alternative<Numbered<ThreadId>>(row) ||
      std::holds_alternative<Numbered<ModuleId>>(row) || std::holds_alternative<Numbered<FrameId>>(row) ||
      std::holds_alternative<Numbered<StackId>>(row))
    known_.receive(row);
}

void Intervals::add(SampleId id, const Sample& sample) {
  Growing& last = growing_[uint64_t{sample.event} << 32 | sample.thread.value];
  if (last.id != id) last = Growing{id};
  Sample& more = grown_.emplace_back(sample);
  more.start += last.wall;
  more.wall -= last.wall;
  more.cpu -= last.cpu;
  more.value -= last.value;
  more.samples -= std::min(sample.samples, last.samples);
  samples_ += more.samples;
  last = {id, sample.wall, sample.cpu, sample.samples, sample.value};
}

void Intervals::add(TraceTimeId id, const TraceTime& time) {
  Traced& traced = traced_[time.thread.value];
  if (traced.last == id) {
    traced.times.back() = time;
  } else if (traced.times.empty() || time.start >= traced.times.back().end) {
    traced.times.push_back(time);
    traced.last = id;
  }
}

Result<void> Intervals::commit() {
  sum_up();
  return {};
}

void Intervals::sum_up() {
  for (const Sample& more : grown_) {
    const auto traced = traced_.find(more.thread.value);
    if (traced == traced_.end()) {
      add_to_sum(more, nullptr);
      continue;
    }
    each_piece(std::span<const TraceTime>(traced->second.times), more.start, more.wall,
               [&](Nanoseconds from, Nanoseconds to, const TraceTime* time) {
                 add_to_sum(part_of(more, from, to), time);
               });
  }
  grown_.clear();
  // The last one may grow.
  for (auto at = traced_.begin(); at != traced_.end(); ++at) {
    auto& times = at.value().times;
    times.erase(times.begin(), times.end() - 1);
  }
}

void Intervals::add_to_sum(const Sample& more, const TraceTime* traced) {
  const Key key{uint64_t{more.thread.value} << 32 | more.stack.value,
                uint32_t{more.event} << 16 | static_cast<uint32_t>(more.cpu_state) << 8 |
                    static_cast<uint32_t>(more.gil_state),
                traced != nullptr ? number_of(traced->ids) : 0};
  const auto [at, fresh] = sums_.try_emplace(key, more);
  if (fresh) return;
  Sample& sum = at.value();
  sum.wall += more.wall;
  sum.cpu += more.cpu;
  sum.value += more.value;
  sum.samples += more.samples;
}

uint32_t Intervals::number_of(const TraceIds& ids) {
  if (const auto known = ids_.find(ids); known != ids_.end()) return known->second;
  if (ids_.size() >= kMostSpans) return 0;
  return ids_.emplace(ids, static_cast<uint32_t>(ids_.size() + 1)).first->second;
}

// Rows of a thread that ended before this interval do not grow any more.
void Intervals::forget_ended() {
  for (auto at = growing_.begin(); at != growing_.end();) {
    const auto thread = static_cast<uint32_t>(at->first);
    const bool ended =
        thread != 0 && thread <= known_.threads().size() && known_.thread(ThreadId(thread)).end != 0;
    if (ended && at->second.quiet) {
      traced_.erase(thread);
      at = growing_.erase(at);
    } else {
      at.value().quiet = true;
      ++at;
    }
  }
}

// By what was seen in earlier intervals, too.
void Intervals::learn_endpoints(PartCopy& copy, Profile& part, TaskRows& tasks) {
  tasks_.add_waiters(copy, tasks);
  learn_task_endpoints(part, tasks);
  keep_dispatchers_seen(part, tasks);
  copy.each_process([&](ProcessId known, ProcessId here) {
    known_.emit_meta(fmt::format("{}{}", kDispatchersSeen, known.value),
                     part.meta().at(fmt::format("{}{}", kDispatchersSeen, here.value)));
  });
}

void Intervals::put_sums(PartCopy& copy, Nanoseconds begin) {
  std::vector<std::pair<Key, Sample>> rows(sums_.begin(), sums_.end());
  sums_.clear();
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::map<ThreadId, Nanoseconds> next;  // where the next sample of a thread with traces begins
  for (const auto& [key, sum] : rows) {
    if (key.traced != 0) next[sum.thread] = begin;
  }
  std::vector<const TraceIds*> ids(ids_.size() + 1, nullptr);
  for (const auto& [one, number] : ids_) ids[number] = &one;
  for (auto& [key, sum] : rows) {
    if (const auto found = next.find(sum.thread); found != next.end()) {
      sum.start = found->second;
      found->second += std::max<Nanoseconds>(1, sum.wall);
      if (key.traced != 0) copy.put(TraceTime{sum.thread, *ids[key.traced], sum.start, found->second});
    }
    copy.put(sum);
  }
  ids_.clear();
}

Profile Intervals::cut(const Moment& begin, const Moment& end) {
  Profile part;
  sum_up();
  forget_ended();
  PartCopy copy(known_, part);
  put_sums(copy, begin.monotonic);
  TaskRows tasks = tasks_.cut(copy);
  part.emit_meta("start_unix_ns", std::to_string(begin.unix_time));
  part.emit_meta("start_monotonic_ns", std::to_string(begin.monotonic));
  part.emit_meta("end_monotonic_ns", std::to_string(end.monotonic));
  part.emit(Counter{ProcessId(), std::string(counters::kElapsed), end.monotonic - begin.monotonic});
  name_loop_threads(tasks, part);
  if (!part.samples().empty() || !tasks.times.empty()) learn_endpoints(copy, part, tasks);
  add_await_time(part, tasks);
  return part;
}

}  // namespace phlox::view
