#include "phlox/sampler/session/budget.h"

#include <gtest/gtest.h>

namespace phlox::sampler {
namespace {

// A program in which every sample costs the same, sampled as often as the budget allows.
class Recorded {
 public:
  Recorded(std::optional<double> max_percent, double asked_hz, double start_hz)
      : budget_(max_percent, asked_hz), rate_hz(start_hz) {}
  // Ten turns a second judge, as in a recording.
  void runs(int seconds, Nanoseconds a_sample_takes) {
    for (int i = 0; i < 10 * seconds; ++i) {
      now_ += kSecond / 10;
      taken_ += static_cast<Nanoseconds>(rate_hz / 10 * static_cast<double>(a_sample_takes));
      if (const auto rate = budget_.judge(now_, taken_, rate_hz)) {
        rate_hz = *rate;
        ++changes;
      }
    }
  }
  double percent(Nanoseconds a_sample_takes) const {
    return rate_hz * static_cast<double>(a_sample_takes) / 1e7;
  }

 private:
  Budget budget_;
  Nanoseconds now_ = 1, taken_ = 0;

 public:
  double rate_hz;
  int changes = 0;
};

TEST(Budget, cheap_samples_are_taken_at_the_requested_rate) {
  Recorded program(2, 200, 200);
  program.runs(10, 20'000);  // 0.4 %
  EXPECT_EQ(program.rate_hz, 200);
  EXPECT_EQ(program.changes, 0);
}

TEST(Budget, expensive_samples_are_taken_less_often) {
  Recorded program(2, 1000, 1000);
  program.runs(3, 100'000);  // 10 %
  EXPECT_LT(program.percent(100'000), 2);
  EXPECT_GT(program.percent(100'000), 1.5);
}

TEST(Budget, the_rate_returns_when_samples_are_cheap_again_and_no_further) {
  Recorded program(2, 1000, 1000);
  program.runs(3, 100'000);
  ASSERT_LT(program.rate_hz, 200);
  program.runs(20, 5'000);  // 0.5 % at what was asked for
  EXPECT_EQ(program.rate_hz, 1000);
}

TEST(Budget, a_rate_that_fits_is_left_alone) {
  Recorded program(2, 1000, 1000);
  program.runs(3, 100'000);
  const int changes = program.changes;
  program.runs(20, 100'000);
  EXPECT_EQ(program.changes, changes) << "between 70 and 100 % of the budget";
}

TEST(Budget, something_is_seen_however_dear_it_is) {
  Recorded program(0.001, 100, 100);
  program.runs(10, 10'000'000);
  EXPECT_EQ(program.rate_hz, Budget::kLowestRate);
}

TEST(Budget, a_sample_that_is_dear_by_itself_is_taken_less_often_than_five_times_a_second) {
  Recorded program(2, 200, 200);
  program.runs(20, 10'000'000);  // 10 ms: 5 % at 5 Hz
  EXPECT_LE(program.percent(10'000'000), 2);
  EXPECT_GE(program.percent(10'000'000), 1);
}

TEST(Budget, a_second_without_a_sample_does_not_raise_the_rate) {
  Budget budget(2, 200);
  EXPECT_FALSE(budget.judge(1, 0, 1.5));
  EXPECT_FALSE(budget.judge(kSecond + 1, 0, 1.5));
  EXPECT_TRUE(budget.judge(4 * kSecond, 0, 1.5)) << "several samples were due";
}

TEST(Budget, one_sample_takes_no_more_than_the_budget_allows_at_five_a_second) {
  EXPECT_EQ(Budget::longest_sample(2), kSecond / 250);
  EXPECT_EQ(Budget::longest_sample(0.1), kSecond / 5000);
  EXPECT_FALSE(Budget::longest_sample(std::nullopt));
}

TEST(Budget, samples_that_the_kernel_skipped_lower_the_rate_as_if_they_were_taken) {
  EXPECT_EQ(Budget::with_skipped(4'000'000, 1, 4), 20'000'000);
  EXPECT_EQ(Budget::with_skipped(4'000'000, 1, 0), 4'000'000);
  EXPECT_EQ(Budget::with_skipped(2'500, 0, 4), 2'500) << "what one takes is not known";
  // 4 ms each, at 200 Hz: of the first fortieth of a second one was taken, and four were skipped.
  Budget budget(2, 200);
  EXPECT_FALSE(budget.judge(1, 0, 200));
  const auto rate = budget.judge(kSecond / 40 + 1, Budget::with_skipped(4'000'000, 1, 4), 200);
  ASSERT_TRUE(rate);
  EXPECT_LT(*rate, 6);
}

TEST(Budget, one_odd_turn_is_judged_with_the_second_that_it_lies_in) {
  Budget budget(2, 1000);
  EXPECT_FALSE(budget.judge(1, 0, 1000));
  EXPECT_FALSE(budget.judge(kSecond / 10, kSecond / 100, 1000)) << "10 % of a tenth";
  EXPECT_FALSE(budget.judge(kSecond + 1, kSecond / 100, 1000)) << "1 % of a second";
}

// A stack of thousands of frames.
TEST(Budget, a_dear_beginning_is_seen_before_the_second_is_over) {
  Budget budget(2, 200);
  Nanoseconds taken = 0;
  double rate = 200;
  for (Nanoseconds now = 1; now < kSecond; now += kSecond / 200) {
    taken += static_cast<Nanoseconds>(rate / 200 * kSecond / 1000);  // 20 %
    rate = budget.judge(now, taken, rate).value_or(rate);
  }
  EXPECT_LT(rate, 25);
  EXPECT_LT(taken, kSecond * 35 / 1000);
}

TEST(Budget, a_rate_that_one_dear_beginning_lowered_is_back_within_seconds) {
  Recorded program(2, 200, 200);
  program.runs(1, 3'000'000);
  ASSERT_LT(program.rate_hz, 20);
  program.runs(4, 10'000);
  EXPECT_EQ(program.rate_hz, 200);
}

TEST(Budget, what_a_sample_took_too_much_is_waited_for) {
  Budget budget(2, 200);
  Nanoseconds now = 1, taken = 0, rested = 0;
  EXPECT_EQ(budget.rest(now, taken), 0);
  // Each takes 2 ms, and follows the one before as soon as it may.
  for (int i = 0; i < 50; ++i) {
    taken += kSecond / 500;
    now += kSecond / 200;
    const Nanoseconds rest = budget.rest(now, taken);
    now += rest;
    rested += rest;
  }
  EXPECT_GT(rested, 0);
  // With what there was at the beginning.
  EXPECT_LE(taken, (now + kSecond / 2) / 50);
}

TEST(Budget, a_rate_that_only_rests_keep_within_the_budget_is_lowered) {
  Budget budget(2, 200);
  Nanoseconds now = 1, taken = 0;
  double rate = 200;
  int turns = 0;
  for (const Nanoseconds end = now + 20 * kSecond; now < end;) {
    taken += kSecond / 5000;  // 4 % at 200 Hz
    now += static_cast<Nanoseconds>(1e9 / rate);
    now += budget.rest(now, taken);
    if (const auto lower = budget.judge(now, taken, rate)) rate = *lower;
    if (now > end - 10 * kSecond) ++turns;
  }
  EXPECT_NEAR(rate, 95, 10);
  EXPECT_NEAR(turns, 10 * rate, 100);
}

TEST(Budget, cheap_samples_wait_for_nothing_and_no_wait_is_longer_than_the_lowest_rate_s) {
  Budget budget(2, 200), none(std::nullopt, 200);
  Nanoseconds now = 1, taken = 0;
  for (int i = 0; i < 1000; ++i) {
    taken += 50'000;  // 1 %
    now += kSecond / 200;
    EXPECT_EQ(budget.rest(now, taken), 0);
  }
  EXPECT_EQ(budget.rest(now + 1, taken + 10 * kSecond),
            static_cast<Nanoseconds>(kSecond / Budget::kLowestRate));
  EXPECT_EQ(none.rest(now, kSecond), 0);
}

TEST(Budget, a_rate_does_not_answer_for_what_does_not_fall_with_it) {
  EXPECT_EQ(Budget::of_rate(10, 5), 15);
  EXPECT_EQ(Budget::of_rate(10, 500), 20) << "half of the budget is left to looks";
  EXPECT_EQ(Budget::of_rate(10, -1), 10);
}

TEST(ShortestWait, grows_while_telling_takes_too_much_and_comes_back) {
  ShortestWait shortest(2);
  Nanoseconds now = kSecond, taken = 0;
  const auto pass = [&](double percent) {
    now += kSecond / 4;
    taken += static_cast<Nanoseconds>(kSecond / 400 * percent);
    return shortest.judge(now, taken);
  };
  EXPECT_EQ(pass(0), ShortestWait::kLeast);
  EXPECT_EQ(pass(0.9), ShortestWait::kLeast) << "below half of the budget";
  EXPECT_EQ(pass(1.1), 2 * ShortestWait::kLeast);
  EXPECT_EQ(pass(1.1), 4 * ShortestWait::kLeast);
  EXPECT_EQ(pass(0.5), 4 * ShortestWait::kLeast) << "no swinging to and fro";
  for (int i = 0; i < 10; ++i) pass(5);
  EXPECT_EQ(pass(5), ShortestWait::kMost);
  for (int i = 0; i < 10; ++i) pass(0.1);
  EXPECT_EQ(pass(0.1), ShortestWait::kLeast);
}

TEST(ShortestWait, without_a_budget_each_is_reported) {
  ShortestWait shortest(std::nullopt);
  for (int i = 1; i < 10; ++i) EXPECT_EQ(shortest.judge(i * kSecond, i * kSecond / 2), ShortestWait::kLeast);
}

TEST(Budget, without_one_nothing_changes) {
  Recorded program(std::nullopt, 1000, 1000);
  program.runs(5, 900'000);
  EXPECT_EQ(program.rate_hz, 1000);
}

TEST(ClockSetting, a_slow_clock_has_time_to_tick) {
  ClockSetting clock;
  int set = 0;
  for (Nanoseconds now = 1; now < 4 * kSecond; now += kSecond / 40) set += clock.is_due(now, 5);
  EXPECT_GE(set, 2) << "else its jitter stays as it is";
  EXPECT_LE(set, 3);
}

TEST(ClockSetting, a_new_rate_is_set_at_once) {
  ClockSetting clock;
  EXPECT_TRUE(clock.is_due(kSecond, 200));
  EXPECT_FALSE(clock.is_due(kSecond + 1, 200));
  EXPECT_TRUE(clock.is_due(kSecond + 2, 20));
}

}  // namespace
}  // namespace phlox::sampler
