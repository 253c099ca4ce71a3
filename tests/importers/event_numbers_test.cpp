#include "phlox/importers/event_numbers.h"

#include <gtest/gtest.h>

#include "phlox/profile/profile.h"

namespace phlox::importers {
namespace {

TEST(EventNumbers, what_no_sum_holds_is_cut_and_known) {
  profile::Profile profile;
  EventNumbers numbers(profile);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(numbers.take(9'007'199'254'740'993), 9'007'199'254'740'993);
  EXPECT_FALSE(numbers.left_out());
  EXPECT_EQ(numbers.take(~uint64_t{0}), kMost - 9'007'199'254'740'993);
  EXPECT_TRUE(numbers.left_out());
}

TEST(ClockPeriods, those_longer_than_an_hour_are_counted) {
  ClockPeriods periods;
  EXPECT_EQ(periods.take(uint64_t{3600} * kSecond), 3600 * kSecond);
  EXPECT_EQ(periods.longer(), 0u);
  EXPECT_EQ(periods.take(uint64_t{7200} * kSecond), 3600 * kSecond);
  EXPECT_EQ(periods.take(~uint64_t{0}), 3600 * kSecond);
  EXPECT_EQ(periods.longer(), 2u);
  EXPECT_TRUE(periods.warning().starts_with("2 samples"));
}

}  // namespace
}  // namespace phlox::importers
