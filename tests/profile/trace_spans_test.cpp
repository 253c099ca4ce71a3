#include "phlox/profile/trace_spans.h"

#include <gtest/gtest.h>

#include "phlox/profile/profile.h"

namespace phlox::profile {
namespace {

TraceTime time_at(uint32_t thread, uint8_t trace, Nanoseconds start, Nanoseconds end) {
  TraceTime time{ThreadId(thread), {}, start, end};
  time.ids.trace.fill(trace);
  time.ids.span.fill(trace);
  return time;
}

TEST(TraceSpans, what_goes_on_is_one_row) {
  Profile profile;
  TraceSpans spans(profile);
  spans.add(time_at(1, 7, 0, 10));
  spans.flush();
  spans.add(time_at(1, 7, 10, 30));
  spans.add(time_at(2, 7, 10, 40));
  spans.flush();
  ASSERT_EQ(profile.trace_times().size(), 2u);
  EXPECT_EQ(profile.trace_times()[0].start, 0);
  EXPECT_EQ(profile.trace_times()[0].end, 30);
  EXPECT_EQ(profile.trace_times()[1].thread, ThreadId(2));
}

TEST(TraceSpans, another_span_or_a_gap_begins_a_row) {
  Profile profile;
  TraceSpans spans(profile);
  spans.add(time_at(1, 7, 0, 10));
  spans.add(time_at(1, 8, 10, 20));
  spans.add(time_at(1, 8, 25, 30));
  spans.add(time_at(1, 8, 30, 30));  // nothing
  spans.close(ThreadId(1));
  spans.add(time_at(1, 8, 30, 40));
  spans.flush();
  ASSERT_EQ(profile.trace_times().size(), 4u);
  EXPECT_EQ(profile.trace_times()[1].end, 20);
  EXPECT_EQ(profile.trace_times()[2].start, 25);
  EXPECT_EQ(profile.trace_times()[3].start, 30);
}

}  // namespace
}  // namespace phlox::profile
