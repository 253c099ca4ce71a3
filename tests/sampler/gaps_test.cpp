#include "phlox/sampler/session/gaps.h"

#include <gtest/gtest.h>

namespace phlox::sampler {
namespace {

Finder::State checked(uint64_t checks, bool any_left) {
  Finder::State state;
  state.checks = checks;
  state.any_left = any_left;
  return state;
}

TEST(Gaps, their_times_add_up_and_the_present_one_counts) {
  Gaps gaps;
  EXPECT_EQ(gaps.total(5), 0);
  gaps.begin(10, 0);
  gaps.begin(12, 0);  // it goes on
  EXPECT_EQ(gaps.total(15), 5);
  gaps.end(20);
  gaps.end(25);
  EXPECT_EQ(gaps.total(30), 10);
  gaps.begin(40, 0);
  EXPECT_EQ(gaps.total(41), 11);
}

TEST(Gaps, each_becomes_long_once) {
  Gaps gaps;
  EXPECT_FALSE(gaps.becomes_long(kSecond * 100)) << "there is none";
  for (const Nanoseconds from : {kSecond, 50 * kSecond}) {
    gaps.begin(from, 0);
    EXPECT_FALSE(gaps.becomes_long(from + kLongWait));
    EXPECT_TRUE(gaps.becomes_long(from + kLongWait + 1));
    EXPECT_FALSE(gaps.becomes_long(from + kLongWait + 2));
    gaps.end(from + 2 * kLongWait);
  }
}

TEST(Gaps, the_last_is_known_after_a_whole_check_that_began_after_the_end) {
  Gaps gaps;
  EXPECT_FALSE(gaps.is_last(1, checked(100, false))) << "a program is recorded";
  gaps.begin(10, 7);
  EXPECT_FALSE(gaps.is_last(11, checked(8, false))) << "that check may have begun before";
  EXPECT_TRUE(gaps.is_last(12, checked(9, false)));
}

TEST(Gaps, processes_that_are_left_may_become_pythons_for_a_while) {
  Gaps gaps;
  gaps.begin(10, 7);
  EXPECT_FALSE(gaps.is_last(10 + kOrphansPatience, checked(20, true)));
  EXPECT_TRUE(gaps.is_last(11 + kOrphansPatience, checked(20, true)));
}

}  // namespace
}  // namespace phlox::sampler
