#include "phlox/process/clock_offset.h"

#include <gtest/gtest.h>

namespace phlox::process {
namespace {

TEST(ClockOffset, seconds_and_nanoseconds_of_the_monotonic_clock) {
  EXPECT_EQ(parse_monotonic_offset("monotonic     1000000         5\nboottime         7         0\n"),
            1'000'000 * kSecond + 5);
  EXPECT_EQ(parse_monotonic_offset("boottime 7 0\nmonotonic 3 0\n"), 3 * kSecond);
}

TEST(ClockOffset, a_clock_behind_the_hosts_counts_its_nanoseconds_upwards) {
  EXPECT_EQ(parse_monotonic_offset("monotonic -10 250000000\nboottime 0 0\n"), -10 * kSecond + kSecond / 4);
}

TEST(ClockOffset, text_of_another_kind_says_nothing) {
  EXPECT_FALSE(parse_monotonic_offset(""));
  EXPECT_FALSE(parse_monotonic_offset("boottime 7 0\n"));
  EXPECT_FALSE(parse_monotonic_offset("monotonic\n"));
  EXPECT_FALSE(parse_monotonic_offset("monotonic 5\n"));
  EXPECT_FALSE(parse_monotonic_offset("monotonic 9223372036854775807 0\n"));
  EXPECT_FALSE(parse_monotonic_offset("monotonic 5 -1\n"));
}

}  // namespace
}  // namespace phlox::process
