#include "phlox/sampler/capture/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace phlox::sampler {
namespace {

constexpr Nanoseconds kInterval = 1'000'000;

TEST(Schedule, keeps_the_rate_however_long_a_sample_takes) {
  Schedule schedule(kInterval, 42);
  schedule.start(0);
  Nanoseconds now = 0;
  constexpr int kSamples = 20'000;
  for (int i = 0; i < kSamples; ++i) now = schedule.next(now + kInterval / 4);
  EXPECT_NEAR(static_cast<double>(now) / (double{kInterval} * kSamples), 1.0, 0.01);
  EXPECT_EQ(schedule.missed(), 0U);
}

TEST(Schedule, moments_lie_between_half_and_one_and_a_half_intervals_apart) {
  Schedule schedule(kInterval, 7);
  schedule.start(0);
  Nanoseconds before = 0;
  double sum = 0, squares = 0;
  constexpr int kSamples = 50'000;
  for (int i = 0; i < kSamples; ++i) {
    const Nanoseconds next = schedule.next(before);
    const auto gap = static_cast<double>(next - before) / kInterval;
    EXPECT_GE(gap, 0.5);
    EXPECT_LE(gap, 1.5);
    sum += gap;
    squares += gap * gap;
    before = next;
  }
  const double mean = sum / kSamples;
  EXPECT_NEAR(mean, 1.0, 0.01);
  EXPECT_NEAR(squares / kSamples - mean * mean, 1.0 / 12, 0.005);  // of a uniform spread
}

TEST(Schedule, a_program_with_the_same_period_is_seen_in_all_its_phases) {
  Schedule schedule(kInterval, 3);
  schedule.start(0);
  std::vector<int> phases(10);
  Nanoseconds now = 0;
  constexpr int kSamples = 50'000;
  for (int i = 0; i < kSamples; ++i) {
    now = schedule.next(now);
    ++phases[static_cast<size_t>((now % kInterval) * 10 / kInterval)];
  }
  for (const int count : phases) EXPECT_NEAR(count, kSamples / 10, kSamples / 100);
}

TEST(Schedule, after_a_long_sleep_it_counts_what_it_missed_and_does_not_catch_up) {
  Schedule schedule(kInterval, 5);
  schedule.start(0);
  Nanoseconds now = schedule.next(0);
  now += 1000 * kInterval;  // a laptop's lid
  const Nanoseconds next = schedule.next(now);
  EXPECT_GE(next, now + kInterval / 2);
  EXPECT_NEAR(static_cast<double>(schedule.missed()), 1000, 2);
  EXPECT_GE(schedule.next(next), next + kInterval / 2);
}

TEST(IdlePause, grows_with_the_samples_that_saw_nothing_run_and_has_an_end) {
  EXPECT_EQ(idle_pause(0), 1U);
  EXPECT_EQ(idle_pause(8), 1U);
  EXPECT_EQ(idle_pause(9), 2U);
  EXPECT_EQ(idle_pause(40), 6U);
  EXPECT_EQ(idle_pause(~uint32_t{0}), 16U);
  EXPECT_EQ(idle_pause_in_crowd(9, 10'000'000), 2U) << "at 100 Hz as with few";
  EXPECT_EQ(idle_pause_in_crowd(~uint32_t{0}, 10'000'000), 16U);
  EXPECT_EQ(idle_pause_in_crowd(2, 1'000'000), 1U);
  EXPECT_EQ(idle_pause_in_crowd(6, 1'000'000), 4U) << "of a thread that wakes each 20 ms";
  EXPECT_EQ(idle_pause_in_crowd(~uint32_t{0}, 1'000'000), 64U);
  EXPECT_EQ(idle_pause_in_crowd(~uint32_t{0}, 0), 16U) << "as fast as it goes";
}

}  // namespace
}  // namespace phlox::sampler
