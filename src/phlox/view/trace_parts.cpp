#include "phlox/view/trace_parts.h"

#include <cmath>
#include <tuple>

#include "phlox/view/await_time.h"

namespace phlox::view {

using namespace profile;

namespace {

int64_t share_until(int64_t whole, Nanoseconds part, Nanoseconds wall) {
  if (part >= wall) return whole;
  return std::llround(double(whole) * (double(part) / double(wall)));
}

}  // namespace

int64_t share_of(int64_t whole, Nanoseconds before, Nanoseconds after, Nanoseconds wall) {
  return share_until(whole, after, wall) - (before > 0 ? share_until(whole, before, wall) : 0);
}

Sample part_of(const Sample& sample, Nanoseconds from, Nanoseconds to) {
  Sample part = sample;
  if (to - from == sample.wall) return part;
  const Nanoseconds before = from - sample.start, after = to - sample.start;
  part.start = from;
  part.wall = to - from;
  part.cpu = share_of(sample.cpu, before, after, sample.wall);
  part.samples = static_cast<uint32_t>(share_of(sample.samples, before, after, sample.wall));
  part.value = share_of(sample.value, before, after, sample.wall);
  if (after != sample.wall) part.waker = {};  // the wait went on
  return part;
}

bool TraceParts::is_without_moment(const Sample& sample) {
  return sample.system_call == kTasksAwait;
}

SampleFilter::Part part_of(const SampleFilter::Part& whole, Nanoseconds from, Nanoseconds to) {
  SampleFilter::Part part = whole;
  if (to - from == whole.wall) return part;
  const Nanoseconds before = from - whole.start, after = to - whole.start;
  part.start = from;
  part.wall = to - from;
  for (int64_t SampleFilter::Part::*sum : {&SampleFilter::Part::cpu, &SampleFilter::Part::samples,
                                           &SampleFilter::Part::value, &SampleFilter::Part::weight})
    part.*sum = share_of(whole.*sum, before, after, whole.wall);
  return part;
}

// A file may have times that overlap: the one that began first counts.
TraceParts::TraceParts(const Profile& profile) : begins_(profile.threads().size() + 2, 0) {
  const auto& times = profile.trace_times();
  std::vector<uint32_t> order;
  order.reserve(times.size());
  for (uint32_t i = 0; i < times.size(); ++i) {
    if (times[i].thread && times[i].thread.value <= profile.threads().size() && times[i].end > times[i].start)
      order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tuple(times[a].thread.value, times[a].start, a) <
           std::tuple(times[b].thread.value, times[b].start, b);
  });
  rows_.reserve(order.size());
  uint32_t last = 0;
  for (const uint32_t index : order) {
    const TraceTime& time = times[index];
    const bool follows = time.thread.value == last && !rows_.empty();
    const Nanoseconds start = follows ? std::max(time.start, rows_.back().end) : time.start;
    if (start >= time.end) continue;
    for (; last < time.thread.value; ++last) begins_[last + 1] = static_cast<uint32_t>(rows_.size());
    rows_.push_back({start, time.end, index});
  }
  for (++last; last < begins_.size(); ++last) begins_[last] = static_cast<uint32_t>(rows_.size());
  if (are_sound(profile)) return;
  rows_.clear();
  std::fill(begins_.begin(), begins_.end(), 0);
}

std::span<const TraceParts::Time> TraceParts::of(ThreadId thread) const {
  if (size_t{thread.value} + 1 >= begins_.size()) return {};
  return std::span(rows_).subspan(begins_[thread.value], begins_[thread.value + 1] - begins_[thread.value]);
}

// The intervals of a thread follow one another, so all of them together have little more parts than there are
// intervals and times. Those of a hostile recording may all be as long as the recording.
bool TraceParts::are_sound(const Profile& profile) const {
  const uint64_t most = 8 * (profile.samples().size() + rows_.size()) + 1000;
  uint64_t parts = 0;
  for (const Sample& sample : profile.samples()) {
    const auto rows = of(sample.thread);
    if (rows.empty()) continue;
    const Nanoseconds end = sample.start + sample.wall;
    const auto first = std::partition_point(rows.begin(), rows.end(),
                                            [&](const Time& one) { return one.end <= sample.start; });
    const auto last =
        std::partition_point(first, rows.end(), [&](const Time& one) { return one.start < end; });
    parts += static_cast<uint64_t>(last - first);
    if (parts > most) return false;
  }
  return true;
}

uint32_t TraceParts::at(ThreadId thread, Nanoseconds moment) const {
  const auto rows = of(thread);
  const auto row =
      std::partition_point(rows.begin(), rows.end(), [&](const Time& one) { return one.end <= moment; });
  return row != rows.end() && row->start <= moment ? row->index : kNone;
}

}  // namespace phlox::view
