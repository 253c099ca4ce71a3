#include "phlox/incidents/recent.h"

#include <algorithm>

#include "phlox/view/part.h"
#include "phlox/view/system_calls.h"

namespace phlox::incidents {

using namespace profile;
using namespace view;

void Recent::receive(const AnyRow& row) {
  if (const auto* counter = std::get_if<Unnumbered<Counter>>(&row)) {
    counters_[counter->value.process][counter->value.name] = counter->value.value;
    return;
  }
  if (const auto* meta = std::get_if<Unnumbered<Meta>>(&row)) {
    // Others grow with the recording.
    if (meta->value.key == "machine" || meta->value.key == "start_monotonic_ns") known_.receive(row);
    return;
  }
  if (const auto* thread = std::get_if<Numbered<ThreadId>>(&row)) return take(thread->id, thread->value);
  if (std::holds_alternative<Numbered<ProcessId>>(row) || std::holds_alternative<Numbered<ModuleId>>(row) ||
      std::holds_alternative<Numbered<FrameId>>(row) || std::holds_alternative<Numbered<StackId>>(row))
    known_.receive(row);
  if (const auto* process = std::get_if<Numbered<ProcessId>>(&row);
      process != nullptr && process->value.end != 0) {
    counters_.erase(process->id);
    kernel_names_.erase(process->id);
  }
}

void Recent::take(ThreadId id, Thread thread) {
  const Process* const its = process(thread.process);
  if (its != nullptr && thread.tid == its->pid && its->end == 0)
    kernel_names_[thread.process] = thread.kernel_name;
  const auto found = kernel_names_.find(thread.process);
  if (found != kernel_names_.end() && thread.kernel_name == found->second) thread.kernel_name.clear();
  known_.emit(id, thread);
}

Sample Recent::put(SampleId id, const Sample& sample) {
  Sample growth = sample;
  newest_ = std::max(newest_, sample.start + sample.wall);
  if (samples_.empty()) first_ = id.value;
  const size_t at = id.value - first_;
  if (id.value >= first_ && at < samples_.size()) {
    growth.wall -= samples_[at].wall;
    growth.cpu -= samples_[at].cpu;
    samples_[at] = sample;
  } else if (id.value >= first_) {
    samples_.resize(at);  // ids come without a gap
    samples_.push_back(sample);
  } else {
    growth.wall = growth.cpu = 0;  // too old
  }
  while (!samples_.empty() && (samples_.size() > kMostSamples ||
                               samples_.front().start + samples_.front().wall < newest_ - window_)) {
    samples_.pop_front();
    ++first_;
  }
  return growth;
}

const Process* Recent::process(ProcessId id) const {
  return id && id.value <= known_.processes().size() ? &known_.process(id) : nullptr;
}

const Thread* Recent::thread(ThreadId id) const {
  return id && id.value <= known_.threads().size() ? &known_.thread(id) : nullptr;
}

bool Recent::is_aarch64() const {
  return machine_of(known_) == "aarch64";
}

Profile Recent::part(Nanoseconds from, ProcessId process,
                     const std::function<bool(const Sample&)>& takes) const {
  Profile part;
  PartCopy copy(known_, part);
  ThreadId last;
  for (const Sample& sample : samples_) {
    if (!sample.thread || sample.start + sample.wall <= from || !takes(sample)) continue;
    copy.put(sample);
    last = sample.thread;
  }
  if (!last) return part;
  const auto put = [&](ProcessId of, ProcessId as) {
    const auto found = counters_.find(of);
    if (found == counters_.end()) return;
    for (const auto& [name, value] : found->second) part.emit(Counter{as, name, value});
  };
  put({}, {});
  if (part.processes().size() == 1) put(process, ProcessId(1));
  return part;
}

Profile Recent::rows_without_samples() const {
  Profile rows;
  for (uint32_t i = 1; i <= known_.processes().size(); ++i)
    rows.emit(ProcessId(i), known_.process(ProcessId(i)));
  for (uint32_t i = 1; i <= known_.threads().size(); ++i) rows.emit(ThreadId(i), known_.thread(ThreadId(i)));
  return rows;
}

}  // namespace phlox::incidents
