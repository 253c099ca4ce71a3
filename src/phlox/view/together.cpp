#include "phlox/view/together.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/profile/cpu_shortage.h"
#include "phlox/profile/descendants.h"
#include "phlox/profile/recorded_words.h"
#include "phlox/view/forks.h"
#include "phlox/view/process_names.h"

namespace phlox::view {

using namespace profile;

namespace {

struct Span {
  Nanoseconds begin = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds end = std::numeric_limits<Nanoseconds>::min();
  bool is_empty() const { return begin > end; }
  void hold(Nanoseconds from, Nanoseconds to) {
    begin = std::min(begin, from);
    end = std::max(end, to);
  }
};

Span span_of(const Profile& profile) {
  Span span;
  for (const Sample& sample : profile.samples()) span.hold(sample.start, sample.start + sample.wall);
  for (const Event& event : profile.events()) span.hold(event.time, event.time);
  return span;
}

std::string meta_text(const Profile& profile, std::string_view key) {
  const auto found = profile.meta().find(key);
  return found == profile.meta().end() ? std::string() : found->second;
}

// The calendar time at which a recording's clock began to count: the boot of its host.
std::optional<int64_t> boot_of(const Profile& profile) {
  const auto calendar = parse_number<int64_t>(meta_text(profile, "start_unix_ns"));
  const auto clock = parse_number<int64_t>(meta_text(profile, "start_monotonic_ns"));
  if (!calendar || !clock || std::abs(*clock) > std::numeric_limits<int64_t>::max() / 4) return {};
  return *calendar - *clock;
}

bool share_a_clock(const Profile& one, const Profile& other) {
  constexpr int64_t kCorrected = 60 * kSecond;  // the calendar may be adjusted
  const auto first = boot_of(one), second = boot_of(other);
  return first && second && std::abs(*first - *second) < kCorrected &&
         meta_text(one, "host") == meta_text(other, "host");
}

template <class IdType>
IdType shifted(IdType id, size_t by) {
  return id ? IdType(static_cast<uint32_t>(id.value + by)) : IdType();
}
template <class IdType>
std::optional<IdType> shifted(const std::optional<IdType>& id, size_t by) {
  return id ? std::optional(shifted(*id, by)) : id;
}

// How the times of a recording follow those of the earlier ones.
struct Order {
  bool overlap = false;
  Nanoseconds shift = 0;  // to be added to each of its times
};

Order order_of(const Profile& all, const Profile& other) {
  const Span before = span_of(all), added = span_of(other);
  if (before.is_empty() || added.is_empty()) return {};
  if (share_a_clock(all, other) && added.begin < before.end && before.begin < added.end)
    return {.overlap = true};
  // No real recording needs more, and times must not overflow.
  constexpr Nanoseconds kMost = Nanoseconds{1} << 61;
  const Nanoseconds shift = before.end - added.begin;
  return {.shift = std::abs(shift) <= kMost ? shift : 0};
}

class Addition {
 public:
  Addition(Profile& all, const Profile& other)
      : all_(all),
        other_(other),
        processes_(all.processes().size()),
        threads_(all.threads().size()),
        modules_(all.modules().size()),
        frames_(all.frames().size()),
        stacks_(all.stacks().size()),
        wakers_(all.wakers().size()),
        wait_targets_(all.wait_targets().size()),
        order_(order_of(all, other)) {
    for (const Sample& sample : all.samples()) value_left_ -= sample.value;
  }

  void add() {
    put_meta();
    put_processes();
    put_stacks();
    put_waits();
    put_samples();
    put_trace_times();
    put_events();
  }
  uint32_t threads() const { return static_cast<uint32_t>(threads_); }

 private:
  template <class IdType>
  static IdType next(size_t rows) {
    return IdType(static_cast<uint32_t>(rows + 1));
  }

  void put_meta() {
    CpuUse use = cpu_use(all_);
    const CpuUse added = cpu_use(other_);
    const bool known = !order_.overlap && use.is_known() && added.is_known();
    use.busy = known ? use.busy + added.busy : 0;
    use.idle = known ? use.idle + added.idle : 0;
    use.stolen = known ? use.stolen + added.stolen : 0;
    for (const auto& [key, value] :
         {std::pair("host_busy_ns", use.busy), {"host_idle_ns", use.idle}, {"host_stolen_ns", use.stolen}})
      all_.emit_meta(key, std::to_string(value));
    auto rows = descendants(all_);
    for (Descendant& row : descendants(other_)) rows.push_back(std::move(row));
    put_descendants(all_, rows);
    for (const auto& [key, value] : other_.meta()) {
      const bool of_a_row = key.starts_with(kForkedFrom) || key.starts_with(kProcessName) ||
                            key.starts_with(kProcessRank) || key.starts_with(kResource);
      if (key.starts_with(kForkedFrom)) put_fork(key, value);
      if (key.starts_with(kResource)) put_resource(key, value);
      if (!of_a_row && !all_.meta().contains(key)) all_.emit_meta(key, value);
    }
  }

  void put_fork(std::string_view key, std::string_view value) {
    const auto child = parse_number<uint32_t>(key.substr(kForkedFrom.size()));
    const auto parent = parse_number<uint32_t>(value);
    const auto is_there = [&](const std::optional<uint32_t>& row) {
      return row && *row != 0 && *row <= other_.processes().size();
    };
    if (!is_there(child) || !is_there(parent)) return;
    all_.emit_meta(fmt::format("{}{}", kForkedFrom, *child + processes_),
                   std::to_string(*parent + processes_));
  }

  void put_resource(std::string_view key, std::string_view value) {
    if (const auto process = parse_number<uint32_t>(key.substr(kResource.size()));
        process && *process != 0 && *process <= other_.processes().size())
      all_.emit_meta(fmt::format("{}{}", kResource, *process + processes_), value);
  }

  void put_processes() {
    for (Process row : other_.processes()) {
      row.parent = shifted(row.parent, processes_);
      row.start += order_.shift;
      if (row.end != 0) row.end += order_.shift;
      all_.emit(next<ProcessId>(all_.processes().size()), row);
    }
    for (Thread row : other_.threads()) {
      row.process = shifted(row.process, processes_);
      row.start += order_.shift;
      if (row.end != 0) row.end += order_.shift;
      all_.emit(next<ThreadId>(all_.threads().size()), row);
    }
    for (Counter row : other_.counters()) {
      row.process = shifted(row.process, processes_);
      for (const Counter& known : all_.counters()) {
        if (!row.process && !known.process && known.name == row.name) row.value += known.value;
      }
      all_.emit(row);
    }
  }

  void put_stacks() {
    for (const Module& row : other_.modules()) all_.emit(next<ModuleId>(all_.modules().size()), row);
    for (Frame row : other_.frames()) {
      row.module = shifted(row.module, modules_);
      row.inlined_in = shifted(row.inlined_in, frames_);
      all_.emit(next<FrameId>(all_.frames().size()), row);
    }
    for (Stack row : other_.stacks()) {
      row.parent = shifted(row.parent, stacks_);
      row.frame = shifted(row.frame, frames_);
      all_.emit(next<StackId>(all_.stacks().size()), row);
    }
  }

  void put_waits() {
    for (Waker row : other_.wakers()) {
      row.thread = shifted(row.thread, threads_);
      row.stack = shifted(row.stack, stacks_);
      all_.emit(next<WakerId>(all_.wakers().size()), row);
    }
    for (const WaitTarget& row : other_.wait_targets())
      all_.emit(next<WaitTargetId>(all_.wait_targets().size()), row);
  }

  void put_samples() {
    for (Sample row : other_.samples()) {
      row.thread = shifted(row.thread, threads_);
      row.waker = shifted(row.waker, wakers_);
      row.wait_target = shifted(row.wait_target, wait_targets_);
      row.code_file = shifted(row.code_file, modules_);
      row.stack = shifted(row.stack, stacks_);
      row.start += order_.shift;
      // One recording alone may already reach the largest possible sum.
      row.value = std::min(row.value, value_left_);
      value_left_ -= row.value;
      all_.emit(next<SampleId>(all_.samples().size()), row);
    }
  }

  void put_trace_times() {
    for (TraceTime row : other_.trace_times()) {
      row.thread = shifted(row.thread, threads_);
      row.start += order_.shift;
      row.end += order_.shift;
      all_.emit(next<TraceTimeId>(all_.trace_times().size()), row);
    }
  }

  void put_events() {
    for (Event row : other_.events()) {
      if (row.kind == EventKind::recording_start || row.kind == EventKind::recording_end) continue;
      row.process = shifted(row.process, processes_);
      row.thread = shifted(row.thread, threads_);
      row.time += order_.shift;
      all_.emit(row);
    }
    for (TimeLabel label : other_.time_labels()) {
      label.start += order_.shift;
      label.end += order_.shift;
      all_.put_time_label(std::move(label));
    }
  }

  Profile& all_;
  const Profile& other_;
  size_t processes_, threads_, modules_, frames_, stacks_, wakers_, wait_targets_;
  Order order_;
  int64_t value_left_ = std::numeric_limits<int64_t>::max();
};

struct RowsBefore {
  size_t loops, times;
};

void add_moments(TaskRows& rows, const TaskRows& of_other, const RowsBefore& before, const Profile& all,
                 const Profile& other) {
  if (of_other.ready.empty() && of_other.requests.empty()) return;
  const Nanoseconds shift = order_of(all, other).shift;
  const size_t requests = rows.requests.size();
  for (ReadyTasks row : of_other.ready) {
    row.loop = shifted(row.loop, before.loops);
    row.time += shift;
    rows.ready.push_back(row);
  }
  for (Request row : of_other.requests) {
    row.loop = shifted(row.loop, before.loops);
    row.latest_begin += shift;
    row.earliest_end += shift;
    if (row.earliest_begin) *row.earliest_begin += shift;
    if (row.latest_end) *row.latest_end += shift;
    rows.requests.push_back(row);
  }
  for (RequestPart row : of_other.request_parts) {
    row.request = shifted(row.request, requests);
    row.time = shifted(row.time, before.times);
    rows.request_parts.push_back(row);
  }
}

}  // namespace

uint32_t add_recording(Profile& all, const Profile& other) {
  Addition addition(all, other);
  addition.add();
  return addition.threads();
}

void add_tasks(TaskRows& rows, const TaskRows& of_other, const Profile& all, const Profile& other) {
  const size_t loops = rows.loops.size(), stacks = rows.stacks.size(), groups = rows.groups.size();
  const size_t times = rows.times.size();
  for (TaskCensus row : of_other.censuses) {
    row.process = shifted(row.process, all.processes().size());
    rows.censuses.push_back(std::move(row));
  }
  for (EventLoop row : of_other.loops) {
    row.process = shifted(row.process, all.processes().size());
    row.thread = shifted(row.thread, all.threads().size());
    rows.loops.push_back(std::move(row));
  }
  for (TaskStack row : of_other.stacks) {
    row.parent = shifted(row.parent, stacks);
    row.frame = shifted(row.frame, all.frames().size());
    rows.stacks.push_back(row);
  }
  // What one recording holds may be all that a sum holds.
  Nanoseconds time_left = std::numeric_limits<Nanoseconds>::max();
  uint64_t seen_left = std::numeric_limits<uint64_t>::max();
  for (const TaskTime& row : rows.times) {
    time_left -= row.time;
    seen_left -= row.seen;
  }
  for (TaskTime row : of_other.times) {
    row.loop = shifted(row.loop, loops);
    row.stack = shifted(row.stack, stacks);
    row.time = std::min(row.time, time_left);
    row.seen = std::min(row.seen, seen_left);
    time_left -= row.time;
    seen_left -= row.seen;
    rows.times.push_back(std::move(row));
  }
  add_moments(rows, of_other, {loops, times}, all, other);
  for (TaskGroup row : of_other.groups) {
    row.loop = shifted(row.loop, loops);
    row.frame = shifted(row.frame, all.frames().size());
    rows.groups.push_back(row);
  }
  for (TaskWaiter row : of_other.waiters) {
    row.group = shifted(row.group, groups);
    row.stack = shifted(row.stack, stacks);
    rows.waiters.push_back(row);
  }
  for (JobWaiter row : of_other.job_waiters) {
    row.process = shifted(row.process, all.processes().size());
    row.frame = shifted(row.frame, all.frames().size());
    row.stack = shifted(row.stack, stacks);
    rows.job_waiters.push_back(row);
  }
}

}  // namespace phlox::view
