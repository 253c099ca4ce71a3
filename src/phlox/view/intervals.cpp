#include "phlox/view/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

namespace phlox::view {

using namespace profile;

namespace {

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
  const Key key{uint64_t{sample.thread.value} << 32 | sample.stack.value,
                uint32_t{sample.event} << 16 | static_cast<uint32_t>(sample.cpu_state) << 8 |
                    static_cast<uint32_t>(sample.gil_state)};
  const auto [at, fresh] = sums_.try_emplace(key, sample);
  Sample& sum = at.value();
  if (fresh) sum.wall = sum.cpu = sum.value = sum.samples = 0;
  sum.wall += sample.wall - last.wall;
  sum.cpu += sample.cpu - last.cpu;
  sum.value += sample.value - last.value;
  const uint32_t more = sample.samples - std::min(sample.samples, last.samples);
  sum.samples += more;
  samples_ += more;
  last = {id, sample.wall, sample.cpu, sample.samples, sample.value};
}

// Rows of a thread that ended before this interval do not grow any more.
void Intervals::forget_ended() {
  for (auto at = growing_.begin(); at != growing_.end();) {
    const auto thread = static_cast<uint32_t>(at->first);
    const bool ended =
        thread != 0 && thread <= known_.threads().size() && known_.thread(ThreadId(thread)).end != 0;
    if (ended && at->second.quiet) {
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

Profile Intervals::cut(const Moment& begin, const Moment& end) {
  Profile part;
  std::vector<std::pair<Key, Sample>> rows(sums_.begin(), sums_.end());
  sums_.clear();
  forget_ended();
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  PartCopy copy(known_, part);
  for (const auto& [key, sum] : rows) copy.put(sum);
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
