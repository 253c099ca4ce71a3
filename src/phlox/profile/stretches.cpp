#include "phlox/profile/stretches.h"

namespace phlox::profile {
namespace {

bool alike(const Sample& a, const Sample& b) {
  return a.stack == b.stack && a.cpu_state == b.cpu_state && a.gil_state == b.gil_state &&
         a.collecting == b.collecting && a.system_call == b.system_call && a.quality == b.quality;
}

}  // namespace

void Stretches::look(const Sample& sample) {
  auto found = open_.find(sample.thread.value);
  if (found != open_.end()) {
    Open& open = found.value();
    Sample& row = open.sample;
    if (alike(row, sample) && row.start + row.wall == sample.start && row.wall + sample.wall <= kLongest) {
      row.wall += sample.wall;
      row.cpu += sample.cpu;
      row.samples += sample.samples;
      if (sample.cpu_number >= 0) row.cpu_number = sample.cpu_number;
      open.grown = true;
      return;
    }
    tell(open);
    open = Open{{}, sample, true};
    return;
  }
  open_[sample.thread.value] = Open{{}, sample, true};
}

void Stretches::flush() {
  for (auto at = open_.begin(); at != open_.end(); ++at) tell(at.value());
}

void Stretches::close(ThreadId thread) {
  const auto found = open_.find(thread.value);
  if (found == open_.end()) return;
  tell(found.value());
  open_.erase(found);
}

void Stretches::tell(Open& open) {
  if (!open.grown) return;
  if (!open.id) open.id = SampleId(++last_);
  sink_.put_sample(open.id, open.sample);
  open.grown = false;
}

}  // namespace phlox::profile
