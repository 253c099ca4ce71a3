// For which spans of traces the time of a thread was (profile::TraceTime): divides an interval of a thread.
// CPU time and counts are divided in the same proportion as the time. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/view/sample_filter.h"

namespace phlox::view {

// Recordings keep the starts of samples in microseconds. So a span that begins or ends so close to the end of
// an interval does so there, in truth.
inline constexpr Nanoseconds kRounded = 1000;

// Calls visit(from, to, row) for each part of a time, in order; `row`: the one that holds, null: none.
// `rows` have start and end, are sorted, and do not overlap. A time of no length is one part.
template <class Row, class Visit>
void each_piece(std::span<const Row> rows, Nanoseconds start, Nanoseconds wall, Visit&& visit) {
  const Nanoseconds end = start + wall;
  auto row = std::partition_point(rows.begin(), rows.end(), [&](const Row& one) { return one.end <= start; });
  const Nanoseconds slack = wall > 2 * kRounded ? kRounded : 0;
  Nanoseconds from = start, at = start;
  do {
    const bool holds = row != rows.end() && row->start <= at;
    const Row* const here = holds ? &*row : nullptr;
    const Nanoseconds next = row == rows.end() ? end : holds ? row->end : row->start;
    const Nanoseconds to = next >= end - slack ? end : next;
    if (holds) ++row;
    at = to;
    if (to - start < slack) continue;
    visit(from, to, here);
    from = to;
  } while (at < end);
}

// What belongs to a part of a time, so that the parts add up to `whole`. `before`, `after`: the begin and the
// end of the part, from the begin of the time.
int64_t share_of(int64_t whole, Nanoseconds before, Nanoseconds after, Nanoseconds wall);

// The part of a sample from one moment to another, both within it.
profile::Sample part_of(const profile::Sample& sample, Nanoseconds from, Nanoseconds to);
SampleFilter::Part part_of(const SampleFilter::Part& part, Nanoseconds from, Nanoseconds to);

class TraceParts {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  // None, if samples of a thread overlap so much that dividing them would take too long.
  explicit TraceParts(const profile::Profile& profile);

  bool empty() const { return rows_.empty(); }
  // An index of Profile::trace_times(); kNone: the thread worked for no span then, or that is not known.
  uint32_t at(profile::ThreadId thread, Nanoseconds moment) const;

  // Calls visit(from, to, index) for each part of an interval of a thread, in order.
  template <class Visit>
  void each(profile::ThreadId thread, Nanoseconds start, Nanoseconds wall, Visit&& visit) const {
    each_piece(of(thread), start, wall, [&](Nanoseconds from, Nanoseconds to, const Time* time) {
      visit(from, to, time != nullptr ? time->index : kNone);
    });
  }
  // Calls visit(thread, from, to, index) for all times, by thread and start. They do not overlap.
  template <class Visit>
  void each_time(Visit&& visit) const {
    for (uint32_t thread = 1; thread + 1 < begins_.size(); ++thread) {
      for (const Time& time : of(profile::ThreadId(thread)))
        visit(profile::ThreadId(thread), time.start, time.end, time.index);
    }
  }
  // Calls visit(part, index) for each part of a sample. Time that tasks await has no moment: it has one part.
  template <class Visit>
  void each_part(const profile::Sample& sample, Visit&& visit) const {
    if (is_without_moment(sample)) return visit(sample, kNone);
    each(sample.thread, sample.start, sample.wall,
         [&](Nanoseconds from, Nanoseconds to, uint32_t index) { visit(part_of(sample, from, to), index); });
  }
  // The same for what passes a filter.
  template <class Visit>
  void each_part(const profile::Sample& sample, const SampleFilter::Part& part, Visit&& visit) const {
    if (is_without_moment(sample)) return visit(part, kNone);
    each(sample.thread, part.start, part.wall,
         [&](Nanoseconds from, Nanoseconds to, uint32_t index) { visit(part_of(part, from, to), index); });
  }
  static bool is_without_moment(const profile::Sample& sample);

 private:
  struct Time {
    Nanoseconds start = 0, end = 0;
    uint32_t index = 0;
  };
  std::span<const Time> of(profile::ThreadId thread) const;
  bool are_sound(const profile::Profile& profile) const;

  std::vector<Time> rows_;        // by thread and start; those of a thread do not overlap
  std::vector<uint32_t> begins_;  // by id of a thread, and one more
};

}  // namespace phlox::view
