#include "phlox/sampler/assemble/time_split.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace phlox::sampler {
namespace {

// Times of a thread that runs `run` and sleeps `sleep` in turn, found by looks that are kept apart by
// `asleep`.
struct Account {
  TimeSplit time;
  Nanoseconds awake = 0, asleep = 0, smallest = 1'000'000'000;

  void sample(Nanoseconds wall, Nanoseconds ran, bool found_asleep, bool other_known = true) {
    const auto parts = time.split(wall, ran, found_asleep, other_known);
    EXPECT_EQ(parts.own + parts.other, wall);
    EXPECT_GE(parts.other, 0);
    EXPECT_GT(parts.own, 0);
    if (parts.other > 0) smallest = std::min(smallest, parts.other);
    (found_asleep ? asleep : awake) += parts.own;
    (found_asleep ? awake : asleep) += parts.other;
  }
};

TEST(TimeSplit, a_thread_that_every_sample_finds_running_slept_as_long_as_the_kernel_says) {
  Account account;
  for (int i = 0; i < 1000; ++i) account.sample(16'000, 4'000, false);
  EXPECT_EQ(account.asleep, 12'000'000);
}

TEST(TimeSplit, one_that_is_found_asleep_ran_as_long_as_the_kernel_says) {
  Account account;
  for (int i = 0; i < 1000; ++i) account.sample(16'000, i % 3 == 0 ? 9'000 : 0, true);
  EXPECT_NEAR(static_cast<double>(account.awake), 334 * 9'000, 16'000);
}

TEST(TimeSplit, short_times_come_together_and_are_not_forgotten) {
  Account account;
  for (int i = 0; i < 1000; ++i) account.sample(16'000, 160, true);
  EXPECT_NEAR(static_cast<double>(account.awake), 160'000, 2'000);
  EXPECT_GE(account.smallest, 2'000);
}

TEST(TimeSplit, without_a_stack_of_the_other_kind_all_of_it_is_what_it_was_found_in) {
  Account account;
  for (int i = 0; i < 10; ++i) account.sample(16'000, 4'000, true, false);
  EXPECT_EQ(account.asleep, 160'000);
  // And is no debt to whatever is found later.
  account.sample(16'000, 16'000, false);
  EXPECT_EQ(account.awake, 16'000);
}

TEST(TimeSplit, more_running_than_time_is_all_of_the_time) {
  Account account;
  account.sample(16'000, 17'000, false);
  account.sample(16'000, -5, true);
  EXPECT_EQ(account.awake, 16'000);
  EXPECT_EQ(account.asleep, 16'000);
  EXPECT_EQ(account.time.split(0, 10, true, true).own, 0);
}

// A thread that has a third of a CPU: each sample finds it in one state, and the sums are the kernel's.
TEST(StateSplit, states_add_up_to_the_account_whatever_samples_find) {
  StateSplit split;
  Nanoseconds asleep = 0, queued = 0, ran = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto found = i % 3 == 0   ? profile::CpuState::blocked
                       : i % 3 == 1 ? profile::CpuState::running
                                    : profile::CpuState::blocked;
    const Nanoseconds wall = 5'000'000, on = 1'700'000, waiting = 800'000;
    const auto parts = split.split(wall, on, waiting, found);
    const Nanoseconds own = wall - parts.asleep - parts.queued - parts.ran;
    EXPECT_GE(own, 0);
    asleep += parts.asleep + (found == profile::CpuState::blocked ? own : 0);
    ran += parts.ran + (found == profile::CpuState::running ? own : 0);
    queued += parts.queued;
  }
  EXPECT_NEAR(static_cast<double>(ran), 3000 * 1.7e6, 5e6);
  EXPECT_NEAR(static_cast<double>(queued), 3000 * 0.8e6, 5e6);
  EXPECT_NEAR(static_cast<double>(asleep), 3000 * 2.5e6, 5e6);
}

TEST(StateSplit, how_long_one_has_waited_for_a_cpu_by_now_is_not_called_sleep) {
  StateSplit split;
  const auto parts = split.split(10'000'000, 2'000'000, 0, profile::CpuState::runnable);
  EXPECT_EQ(parts.ran, 2'000'000);
  EXPECT_EQ(parts.asleep, 0);
}

// A control group's quota is used up for 80 of each 100 ms, which the kernel counts at their end.
TEST(StateSplit, a_thread_that_is_awake_and_does_not_run_waits_for_a_cpu) {
  StateSplit split;
  Nanoseconds queued = 0, asleep = 0;
  for (int i = 0; i < 2000; ++i) {
    const bool runs = i % 20 >= 16;
    const Nanoseconds counted = i % 20 == 16 ? 80'000'000 : 0;
    const auto parts =
        split.split(5'000'000, runs ? 5'000'000 : 0, counted, profile::CpuState::running, true);
    queued += parts.queued;
    asleep += parts.asleep;
  }
  EXPECT_NEAR(static_cast<double>(queued), 100 * 80e6, 100e6);
  EXPECT_EQ(asleep, 0);
}

TEST(StateSplit, crumbs_come_together) {
  StateSplit split;
  Nanoseconds ran = 0;
  for (int i = 0; i < 1000; ++i) {
    const Nanoseconds one = split.split(5'000'000, 10'000, 0, profile::CpuState::blocked).ran;
    EXPECT_TRUE(one == 0 || one >= kSecond / 4000);
    ran += one;
  }
  EXPECT_NEAR(static_cast<double>(ran), 1e7, 3e5);
}

}  // namespace
}  // namespace phlox::sampler
