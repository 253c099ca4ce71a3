#include "phlox/view/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "phlox/view/endpoints.h"
#include "phlox/view/resource.h"
#include "phlox/view/shown_event.h"

namespace phlox::view {

using namespace profile;

namespace {

// Keys that name a process, by its id or by its row.
constexpr std::array<std::string_view, 2> kFactsOfPid = {"container.", "control_group."};
constexpr std::array<std::string_view, 2> kFactsOfRow = {kResource, kDispatchersSeen};

bool is_of_process(std::string_view key) {
  const auto begins = [&](std::string_view fact) { return key.starts_with(fact); };
  return std::any_of(kFactsOfPid.begin(), kFactsOfPid.end(), begins) ||
         std::any_of(kFactsOfRow.begin(), kFactsOfRow.end(), begins);
}

template <class RowId>
RowId next_row(const auto& rows) {
  return RowId(static_cast<uint32_t>(rows.size() + 1));
}

}  // namespace

PartCopy::PartCopy(const Profile& from, Profile& into) : from_(from), into_(into) {
  for (uint32_t i = 1; i <= from.frames().size() && !from.modules().empty(); ++i) {
    if (const auto& outer = from.frame(FrameId(i)).inlined_in; outer && outer->value < i)
      inlined_[outer->value] = FrameId(i);
  }
  for (const auto& [key, value] : from.meta()) {
    if (!is_of_process(key)) into.emit_meta(key, value);
  }
  for (const Counter& counter : from.counters()) {
    if (!counter.process) into.emit(counter);
  }
}

void PartCopy::put(Sample sample) {
  sample.thread = thread(sample.thread);
  sample.stack = stack(sample.stack);
  sample.code_file = {};
  sample.wait_target = {};
  sample.waker = {};
  into_.emit(SampleId(++samples_), sample);
}

void PartCopy::put(TraceTime time) {
  time.thread = thread(time.thread);
  into_.emit(TraceTimeId(++trace_times_), time);
}

void PartCopy::put_facts(ProcessId old, ProcessId fresh) {
  const auto copy = [&](const std::string& key, const std::string& as) {
    const auto found = from_.meta().find(key);
    if (found != from_.meta().end()) into_.emit_meta(as, found->second);
  };
  for (const std::string_view of_pid : kFactsOfPid) {
    const std::string key = fmt::format("{}{}", of_pid, from_.process(old).pid);
    copy(key, key);
  }
  for (const std::string_view of_row : kFactsOfRow)
    copy(fmt::format("{}{}", of_row, old.value), fmt::format("{}{}", of_row, fresh.value));
}

ProcessId PartCopy::process(ProcessId id) {
  if (!id || id.value > from_.processes().size()) return {};
  const auto [at, added] = processes_.try_emplace(id.value, next_row<ProcessId>(into_.processes()));
  if (added) {
    Process row = from_.process(id);
    row.parent.reset();
    into_.emit(at->second, row);
    put_facts(id, at->second);
  }
  return at->second;
}

ThreadId PartCopy::thread(ThreadId id) {
  if (!id || id.value > from_.threads().size()) return {};
  const auto [at, added] = threads_.try_emplace(id.value, next_row<ThreadId>(into_.threads()));
  if (added) {
    Thread row = from_.thread(id);
    row.process = process(row.process);
    into_.emit(at->second, row);
  }
  return at->second;
}

ModuleId PartCopy::module(ModuleId id) {
  if (!id || id.value > from_.modules().size()) return {};
  const auto [at, added] = modules_.try_emplace(id.value, next_row<ModuleId>(into_.modules()));
  if (added) into_.emit(at->second, from_.modules()[id.value - 1]);
  return at->second;
}

FrameId PartCopy::frame(FrameId id) {
  if (!id || id.value > from_.frames().size()) return {};
  // Outer functions first: a frame's row refers to the row of what it was inlined into.
  std::vector<FrameId> missing;
  FrameId outer;
  for (FrameId at = id; at && at.value <= from_.frames().size();) {
    if (const auto found = frames_.find(at.value); found != frames_.end()) {
      outer = found->second;
      break;
    }
    missing.push_back(at);
    const FrameId next = from_.frame(at).inlined_in.value_or(FrameId());
    at = next < at ? next : FrameId();
  }
  for (size_t i = missing.size(); i-- > 0;) {
    Frame row = from_.frame(missing[i]);
    row.inlined_in = outer ? std::optional(outer) : std::nullopt;
    if (row.module) row.module = module(*row.module);
    outer = next_row<FrameId>(into_.frames());
    into_.emit(outer, row);
    frames_[missing[i].value] = outer;
  }
  put_inlined(id);
  return outer;
}

// A stack refers to the function that has the code; what was inlined there has a frame of its own.
void PartCopy::put_inlined(FrameId into) {
  // Each is greater than the one before, so this ends.
  for (auto next = inlined_.find(into.value); next != inlined_.end(); next = inlined_.find(into.value)) {
    if (frames_.contains(next->second.value)) return;
    Frame row = from_.frame(next->second);
    row.inlined_in = frames_[into.value];
    if (row.module) row.module = module(*row.module);
    const FrameId fresh = next_row<FrameId>(into_.frames());
    into_.emit(fresh, row);
    into = next->second;
    frames_[into.value] = fresh;
  }
}

// From the innermost frame outwards to one already copied, and back.
StackId PartCopy::stack(StackId id) {
  std::vector<StackId> missing;
  StackId parent;
  while (id && id.value <= from_.stacks().size()) {
    if (const auto found = stacks_.find(id.value); found != stacks_.end()) {
      parent = found->second;
      break;
    }
    missing.push_back(id);
    const StackId next = from_.stack(id).parent;
    id = next < id ? next : StackId();
  }
  for (size_t i = missing.size(); i-- > 0;) {
    const StackId fresh = next_row<StackId>(into_.stacks());
    into_.emit(fresh, {parent, frame(from_.stack(missing[i]).frame)});
    stacks_[missing[i].value] = fresh;
    parent = fresh;
  }
  return parent;
}

std::vector<Profile> by_process(const Profile& profile) {
  std::map<ProcessId, std::vector<const Sample*>> samples;
  for (const auto* all : {&profile.samples(), &profile.samples_of_others()}) {
    for (const Sample& sample : *all) {
      if (sample.thread && sample.thread.value <= profile.threads().size())
        samples[profile.thread(sample.thread).process].push_back(&sample);
    }
  }
  std::map<ProcessId, std::vector<const TraceTime*>> trace_times;
  for (const TraceTime& time : profile.trace_times()) {
    if (time.thread && time.thread.value <= profile.threads().size())
      trace_times[profile.thread(time.thread).process].push_back(&time);
  }
  std::vector<Profile> parts;
  parts.reserve(samples.size());
  for (const auto& [process, of_it] : samples) {
    PartCopy copy(profile, parts.emplace_back());
    for (const Sample* sample : of_it) copy.put(*sample);
    for (const TraceTime* time : trace_times[process]) copy.put(*time);
    parts.back().show_samples_of(profile.shown_event());
  }
  return parts;
}

}  // namespace phlox::view
