#include "phlox/profile/spans.h"

#include <algorithm>

namespace phlox::profile {
namespace {

// A wait with a waker is over; another one after it is not the same.
bool alike(const Sample& a, const Sample& b) {
  return a.stack == b.stack && a.cpu_state == b.cpu_state && a.gil_state == b.gil_state &&
         a.collecting == b.collecting && a.system_call == b.system_call && a.quality == b.quality &&
         a.wait_target == b.wait_target && a.code_file == b.code_file && !a.waker;
}

uint64_t key_of(ThreadId thread, uint16_t event) {
  return uint64_t{event} << 32 | thread.value;
}

}  // namespace

void Spans::add(const Sample& sample) {
  const uint64_t key = key_of(sample.thread, sample.event);
  most_event_ = std::max(most_event_, sample.event);
  auto found = open_.find(key);
  if (found != open_.end()) {
    Open& open = found.value();
    Sample& row = open.sample;
    if (alike(row, sample) && row.start + row.wall == sample.start && row.wall + sample.wall <= kLongest) {
      row.wall += sample.wall;
      row.cpu += sample.cpu;
      row.samples += sample.samples;
      row.value += sample.value;
      row.waker = sample.waker;
      if (sample.cpu_number >= 0) row.cpu_number = sample.cpu_number;
      open.grown = true;
      return;
    }
    emit_open(open);
    open = Open{{}, sample, true};
    return;
  }
  open_[key] = Open{{}, sample, true};
}

void Spans::flush() {
  for (auto at = open_.begin(); at != open_.end(); ++at) emit_open(at.value());
}

void Spans::close(ThreadId thread) {
  for (uint32_t event = 0; event <= most_event_; ++event) {
    const auto found = open_.find(key_of(thread, static_cast<uint16_t>(event)));
    if (found == open_.end()) continue;
    emit_open(found.value());
    open_.erase(found);
  }
}

void Spans::emit_open(Open& open) {
  if (!open.grown) return;
  if (!open.id) open.id = SampleId(++last_);
  sink_.emit(open.id, open.sample);
  open.grown = false;
}

}  // namespace phlox::profile
