#include "phlox/profile/profile.h"

#include <algorithm>
#include <utility>

#include "phlox/profile/rows.h"

namespace phlox::profile {

void Profile::receive(const AnyRow& row) {
  take_apart(row, [this](const auto&... parts) { add(parts...); });
}

void Profile::add(const Meta& meta) {
  meta_.insert_or_assign(std::string(meta.key), std::string(meta.value));
}
void Profile::add(ProcessId id, const Process& process) {
  put_row(processes_, id, process);
}
void Profile::add(ThreadId id, const Thread& thread) {
  put_row(threads_, id, thread);
}
void Profile::add(ModuleId id, const Module& module) {
  put_row(modules_, id, module);
}
void Profile::add(FrameId id, const Frame& frame) {
  put_row(frames_, id, frame);
}
void Profile::add(StackId id, const Stack& stack) {
  put_row(stacks_, id, stack);
}
void Profile::add(WakerId id, const Waker& waker) {
  put_row(wakers_, id, waker);
}
void Profile::add(WaitTargetId id, const WaitTarget& wait_target) {
  put_row(wait_targets_, id, wait_target);
}
void Profile::add(SampleId id, const Sample& sample) {
  put_row(samples_, id, sample);
}
void Profile::add(TraceTimeId id, const TraceTime& time) {
  put_row(trace_times_, id, time);
}
void Profile::add(const Event& event) {
  events_.push_back(event);
}

void Profile::add(const Counter& counter) {
  for (Counter& row : counters_) {
    if (row.process == counter.process && row.name == counter.name) {
      row.value = counter.value;
      return;
    }
  }
  counters_.push_back(counter);
}

void Profile::show_samples_of(uint16_t event) {
  shown_event_ = event;
  const auto is_shown = [&](const Sample& sample) { return event == 0 || event_number(sample) == event; };
  if (samples_of_others_.empty() && std::all_of(samples_.begin(), samples_.end(), is_shown)) return;
  samples_.insert(samples_.end(), samples_of_others_.begin(), samples_of_others_.end());
  const auto others = std::stable_partition(samples_.begin(), samples_.end(), is_shown);
  samples_of_others_.assign(others, samples_.end());
  samples_.erase(others, samples_.end());
}

void Profile::replace_samples(std::vector<Sample> samples, std::vector<Stack> stacks) {
  samples_ = std::move(samples);
  samples_of_others_.clear();
  stacks_ = std::move(stacks);
}

void Profile::move_samples(const std::function<StackId(const Sample&)>& stack_of) {
  for (auto* samples : {&samples_, &samples_of_others_}) {
    for (Sample& sample : *samples) sample.stack = stack_of(sample);
  }
}

void Profile::replace_stacks(std::vector<Stack> stacks, const std::vector<StackId>& new_of) {
  stacks_ = std::move(stacks);
  for (Waker& waker : wakers_)
    waker.stack = waker.stack.value < new_of.size() ? new_of[waker.stack.value] : StackId();
  for (auto* samples : {&samples_, &samples_of_others_}) {
    for (Sample& sample : *samples)
      sample.stack = sample.stack.value < new_of.size() ? new_of[sample.stack.value] : StackId();
  }
}

void Profile::emit_all(Sink& sink) const {
  static_assert(std::variant_size_v<AnyRow> == 12, "a new kind of row is emitted here too");
  const auto emit_numbered = [&]<class RowId>(RowId, const auto& rows) {
    for (size_t i = 0; i < rows.size(); ++i) sink.emit(RowId(static_cast<uint32_t>(i + 1)), rows[i]);
  };
  for (const auto& [key, value] : meta_) sink.emit_meta(key, value);
  emit_numbered(ProcessId(), processes_);
  emit_numbered(ThreadId(), threads_);
  emit_numbered(ModuleId(), modules_);
  emit_numbered(FrameId(), frames_);
  emit_numbered(StackId(), stacks_);
  emit_numbered(WakerId(), wakers_);
  emit_numbered(WaitTargetId(), wait_targets_);
  emit_numbered(SampleId(), samples_);
  emit_numbered(TraceTimeId(), trace_times_);
  for (const Event& event : events_) sink.emit(event);
  for (const Counter& counter : counters_) sink.emit(counter);
}

int64_t Profile::counter(std::string_view name) const {
  int64_t sum = 0;
  for (const Counter& row : counters_) {
    if (row.name == name) sum += row.value;
  }
  return sum;
}

}  // namespace phlox::profile
