#include "phlox/cli/view_values.h"

#include <gtest/gtest.h>

#include <tuple>

namespace phlox::cli {
namespace {

TEST(ViewValues, are_words_between_commas) {
  EXPECT_TRUE(parse_by("line,thread")->line);
  EXPECT_TRUE(parse_by("function,process")->process);
  EXPECT_FALSE(parse_by("function")->line);
  for (const char* wrong : {"", "function,line", "lines", "line,,thread"}) {
    const auto by = parse_by(wrong);
    ASSERT_FALSE(by) << wrong;
    EXPECT_EQ(by.error().kind, ErrorKind::usage);
  }
  EXPECT_EQ(*parse_states("running,gil-waits"), 1 | 16);
  EXPECT_FALSE(parse_states("sleeping"));
  EXPECT_EQ(*parse_weight("cpu"), view::Weight::cpu);
  EXPECT_FALSE(parse_weight("time"));
}

TEST(ViewValues, ids_of_traces_are_hex_digits) {
  EXPECT_EQ(*parse_trace("4BF92F3577B34DA6A3CE929D0E0E4736"), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(*parse_trace("00f067aa0ba902b7"), "00f067aa0ba902b7");
  EXPECT_EQ(*parse_trace("4bf92f35"), "4bf92f35");
  for (const char* wrong : {"", "4bf92f3", "4bf92f3g", "4bf92f3577b34da6a3ce929d0e0e47360", "4bf9-2f35"}) {
    const auto trace = parse_trace(wrong);
    ASSERT_FALSE(trace) << wrong;
    EXPECT_EQ(trace.error().kind, ErrorKind::usage);
  }
}

TEST(ViewValues, times_are_ranges) {
  const Nanoseconds ms = 1'000'000, end = std::numeric_limits<Nanoseconds>::max();
  const std::tuple<const char*, Nanoseconds, Nanoseconds> cases[] = {
      {"2s..5s", 2 * kSecond, 5 * kSecond},
      {"..500ms", 0, 500 * ms},
      {"1.5..", 1500 * ms, end},
      {"1.5..2.5", 1500 * ms, 2500 * ms},
      {"0..3m", 0, 180 * kSecond},
      {"1h..2h", 3600 * kSecond, 7200 * kSecond},
      {"7us..8us", 7000, 8000},
      {"1ns..2ns", 1, 2},
      {"..", 0, end}};
  for (const auto& [text, from, to] : cases) {
    const auto range = parse_time_range(text);
    ASSERT_TRUE(range) << text;
    EXPECT_EQ(range->from, from) << text;
    EXPECT_EQ(range->to, to) << text;
  }
  for (const char* wrong : {"", "5", "5..2", "a..b", "-1..2", "1d..2d", "nan..", "..1e30", "2..2", "inf.."}) {
    EXPECT_FALSE(parse_time_range(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace phlox::cli
