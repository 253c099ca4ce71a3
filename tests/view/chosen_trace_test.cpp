#include "phlox/view/chosen_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

constexpr const char* kFirst = "11111111111111111111111111111111";
constexpr Nanoseconds kBegin = test::ProfileMaker::kStart;

// Two threads of 60 ns each. The first works for the traces 1 (10 to 20) and 2 (20 to 45), the other for 1 (0
// to 25). The spans differ.
Profile recorded() {
  Profile profile;
  test::ProfileMaker maker(profile);
  const ThreadId one = maker.thread("one"), other = maker.thread("other");
  maker.add(one, "main;a", 30);
  maker.add(one, "main;b", 30);
  maker.add(other, "main;c", 60);
  uint32_t row = 0;
  const auto add = [&](ThreadId thread, uint8_t trace, uint8_t span, Nanoseconds start, Nanoseconds end) {
    TraceTime time{thread, {}, kBegin + start, kBegin + end};
    time.ids.trace.fill(trace);
    time.ids.span.fill(span);
    profile.emit(TraceTimeId(++row), time);
  };
  add(one, 0x11, 0xa1, 10, 20);
  add(one, 0x1f, 0xa2, 20, 45);
  add(other, 0x11, 0xa3, 0, 25);
  return profile;
}

// By function.
std::map<std::string, Nanoseconds> shown(const std::string& trace) {
  Profile profile = recorded();
  Choices choices;
  choices.trace = trace;
  const auto done = show_trace(profile, choices);
  EXPECT_TRUE(done) << done.error().message;
  std::map<std::string, Nanoseconds> sums;
  for (const Sample& sample : profile.samples())
    sums[profile.frame(profile.stack(sample.stack).frame).function] += sample.wall;
  return sums;
}

Error refused(const std::string& trace, Profile profile = recorded()) {
  Choices choices;
  choices.trace = trace;
  const auto done = show_trace(profile, choices);
  EXPECT_FALSE(done);
  return done ? Error() : done.error();
}

using Sums = std::map<std::string, Nanoseconds>;

TEST(ChosenTrace, only_its_time_is_left) {
  EXPECT_EQ(shown(kFirst), (Sums{{"a", 10}, {"c", 25}}));
  EXPECT_EQ(shown("1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f"), (Sums{{"a", 10}, {"b", 15}}));
}

TEST(ChosenTrace, may_be_one_span_or_the_first_digits) {
  EXPECT_EQ(shown("a3a3a3a3a3a3a3a3"), (Sums{{"c", 25}}));
  EXPECT_EQ(shown("11111111"), (Sums{{"a", 10}, {"c", 25}}));
}

TEST(ChosenTrace, none_chosen_changes_nothing) {
  Profile profile = recorded();
  ASSERT_TRUE(show_trace(profile, {}));
  EXPECT_EQ(profile.samples().size(), 3u);
}

TEST(ChosenTrace, one_that_is_not_there_is_an_error) {
  const Error trace = refused("22222222222222222222222222222222");
  EXPECT_EQ(trace.kind, ErrorKind::usage);
  EXPECT_EQ(trace.message, "this recording has no trace 22222222222222222222222222222222");
  EXPECT_EQ(trace.hint, "the recording has 2 traces; phlox report lists those that took longest");
  EXPECT_EQ(refused("22222222").message, "this recording has no trace that begins with 22222222");
  // The first half of a trace is taken for a span.
  const Error span = refused("1111111111111111");
  EXPECT_EQ(span.message, "this recording has no span 1111111111111111");
  EXPECT_NE(span.hint.find("16 digits are a span"), std::string::npos);
  const Error none = refused(kFirst, Profile());
  EXPECT_NE(none.message.find("no process published them"), std::string::npos);
  EXPECT_NE(none.hint.find("thread context"), std::string::npos);
}

TEST(ChosenTrace, digits_of_several_are_an_error) {
  Profile profile = recorded();
  TraceTime time = profile.trace_times()[0];
  time.ids.trace[15] = 0x12;
  profile.emit(TraceTimeId(4), time);
  const Error error = refused("11111111", profile);
  EXPECT_EQ(error.message, "2 traces begin with 11111111");
  EXPECT_EQ(error.hint,
            "give more digits, as of 11111111111111111111111111111111 and "
            "11111111111111111111111111111112");
}

}  // namespace
}  // namespace phlox::view
