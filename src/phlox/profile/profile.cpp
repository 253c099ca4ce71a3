#include "phlox/profile/profile.h"

#include <algorithm>
#include <utility>

namespace phlox::profile {
namespace {

// Ids count up from 1, so a row is replaced or appended; one from outside that leaves a gap gets empty rows
// before it.
template <class Row, class RowId>
void put(std::vector<Row>& rows, RowId id, const Row& row) {
  if (id.value == 0) return;
  if (rows.size() < id.value) rows.resize(id.value);
  rows[id.value - 1] = row;
}

}  // namespace

void Profile::put_meta(std::string_view key, std::string_view value) {
  meta_.insert_or_assign(std::string(key), std::string(value));
}
void Profile::put_process(ProcessId id, const Process& process) {
  put(processes_, id, process);
}
void Profile::put_thread(ThreadId id, const Thread& thread) {
  put(threads_, id, thread);
}
void Profile::put_module(ModuleId id, const Module& module) {
  put(modules_, id, module);
}
void Profile::put_frame(FrameId id, const Frame& frame) {
  put(frames_, id, frame);
}
void Profile::put_stack(StackId id, const Stack& stack) {
  put(stacks_, id, stack);
}
void Profile::put_wake(WakeId id, const Wake& wake) {
  put(wakes_, id, wake);
}
void Profile::put_awaited(AwaitedId id, const Awaited& awaited) {
  put(awaited_, id, awaited);
}
void Profile::put_sample(SampleId id, const Sample& sample) {
  put(samples_, id, sample);
}
void Profile::put_event(const Event& event) {
  events_.push_back(event);
}

void Profile::put_tally(const Tally& tally) {
  for (Tally& row : tallies_) {
    if (row.process == tally.process && row.name == tally.name) {
      row.value = tally.value;
      return;
    }
  }
  tallies_.push_back(tally);
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

void Profile::replace_stacks(std::vector<Stack> stacks, const std::vector<StackId>& new_of) {
  stacks_ = std::move(stacks);
  for (Wake& wake : wakes_)
    wake.stack = wake.stack.value < new_of.size() ? new_of[wake.stack.value] : StackId();
  for (auto* samples : {&samples_, &samples_of_others_}) {
    for (Sample& sample : *samples)
      sample.stack = sample.stack.value < new_of.size() ? new_of[sample.stack.value] : StackId();
  }
}

int64_t Profile::tally(std::string_view name) const {
  int64_t sum = 0;
  for (const Tally& row : tallies_) {
    if (row.name == name) sum += row.value;
  }
  return sum;
}

}  // namespace phlox::profile
