#include "phlox/incidents/plan.h"

#include <gtest/gtest.h>

namespace phlox::incidents {
namespace {

constexpr Nanoseconds kDay = 86400 * kSecond;

Cause cause(Nanoseconds time, Kind kind = Kind::stall) {
  return {kind, time, "words", "in short"};
}

TEST(Plan, an_incident_lasts_from_before_its_cause_until_after_it_was_noticed) {
  Plan plan(30 * kSecond, 10 * kSecond, 4);
  EXPECT_FALSE(plan.due());
  EXPECT_EQ(plan.note(cause(kDay), kDay + kSecond), Plan::Answer::begins);
  EXPECT_EQ(plan.due(), kDay + 11 * kSecond);
  EXPECT_FALSE(plan.take_due(kDay + 10 * kSecond));
  const auto incident = plan.take_due(kDay + 11 * kSecond);
  ASSERT_TRUE(incident);
  EXPECT_EQ(incident->from, kDay - 30 * kSecond);
  EXPECT_EQ(incident->to, kDay + 11 * kSecond);
  EXPECT_FALSE(plan.due());
  EXPECT_FALSE(plan.take_rest());
}

TEST(Plan, what_happens_meanwhile_joins_it_and_does_not_make_it_longer) {
  Plan plan(30 * kSecond, 10 * kSecond, 1);
  plan.note(cause(kDay), kDay);
  for (int i = 0; i < 30; ++i)
    EXPECT_EQ(plan.note(cause(kDay + i * kSecond / 10, Kind::log), kDay + i * kSecond / 10),
              i == 0 ? Plan::Answer::joins_first : Plan::Answer::joins);
  const auto incident = plan.take_due(kDay + 10 * kSecond);
  ASSERT_TRUE(incident);
  EXPECT_EQ(incident->causes.size(), Plan::kMostCauses);
  EXPECT_EQ(incident->causes.size() + incident->more_causes, 31u);
  EXPECT_EQ(incident->to, kDay + 10 * kSecond);
  EXPECT_EQ(plan.dropped(), 0u);
}

// Its recording would not hold it. Rows arrive late, so the first one is still open.
TEST(Plan, what_happens_after_its_time_is_the_next_incident) {
  Plan plan(2 * kSecond, kSecond, 2);
  plan.note(cause(kDay), kDay);
  EXPECT_EQ(plan.note(cause(kDay + kSecond / 2, Kind::gil), kDay + kSecond), Plan::Answer::joins_first);
  EXPECT_EQ(plan.note(cause(kDay + 2 * kSecond, Kind::log), kDay + 2 * kSecond), Plan::Answer::begins);
  EXPECT_EQ(plan.note(cause(kDay + 3 * kSecond), kDay + 3 * kSecond), Plan::Answer::joins_first);
  EXPECT_EQ(plan.note(cause(kDay + 4 * kSecond), kDay + 4 * kSecond), Plan::Answer::too_many);
  const auto first = plan.take_due(kDay + 3 * kSecond), second = plan.take_due(kDay + 3 * kSecond);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->causes.size(), 2u);
  EXPECT_EQ(first->to, kDay + kSecond);
  EXPECT_EQ(second->causes.front().kind, Kind::log);
  EXPECT_EQ(second->from, kDay);
  EXPECT_EQ(second->to, kDay + 3 * kSecond);
  EXPECT_FALSE(plan.take_rest());
}

TEST(Plan, more_than_so_many_an_hour_are_dropped_and_counted) {
  Plan plan(0, kSecond, 2);
  Nanoseconds now = kDay;
  for (int i = 0; i < 2; ++i, now += 60 * kSecond) {
    EXPECT_EQ(plan.note(cause(now), now), Plan::Answer::begins);
    ASSERT_TRUE(plan.take_due(now + kSecond));
  }
  EXPECT_EQ(plan.note(cause(now), now), Plan::Answer::too_many);
  EXPECT_EQ(plan.note(cause(now), now), Plan::Answer::too_many);
  EXPECT_EQ(plan.dropped(), 2u);
  EXPECT_FALSE(plan.due());
  // An hour after the first of them there is room again, for one.
  now = kDay + 3600 * kSecond;
  EXPECT_EQ(plan.note(cause(now), now), Plan::Answer::begins);
  ASSERT_TRUE(plan.take_due(now + kSecond));
  EXPECT_EQ(plan.note(cause(now + 2), now + 2), Plan::Answer::too_many);
}

TEST(Plan, at_the_end_of_the_recording_the_rest_is_an_incident_too) {
  Plan plan(kSecond, 3600 * kSecond, 1);
  plan.note(cause(kDay), kDay);
  ASSERT_TRUE(plan.take_rest());
  EXPECT_FALSE(plan.take_rest());
}

}  // namespace
}  // namespace phlox::incidents
