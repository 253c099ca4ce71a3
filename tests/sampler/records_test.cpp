#include "phlox/sampler/observe/records.h"

#include <gtest/gtest.h>

#include "phlox/sampler/capture/found_state.h"

namespace phlox::sampler {
namespace {

TEST(ThreadSample, one_that_proves_rest_counts_for_the_skipped_turns) {
  ThreadSample last = sample_at(3, 5'000'000, 4'000'000);
  last.time.cpu = 400'000;
  last.time.ran = 500'000;
  last.stack.fresh = 7;
  last.state.cpu_state = profile::CpuState::blocked;
  const ThreadSample sample = same_sample(last, 9'000'000, last.time.end, 4);
  EXPECT_EQ(sample.time.samples, 4u);
  EXPECT_EQ(sample.time.wall, 4'000'000);
  EXPECT_EQ(sample.time.cpu, 0);
  EXPECT_EQ(sample.time.ran, 0);
  EXPECT_EQ(sample.stack.fresh, 0u);
  EXPECT_EQ(sample.thread, 3u);
  EXPECT_EQ(sample.state.cpu_state, profile::CpuState::blocked);
}

TEST(AwakeState, a_thread_that_neither_ran_nor_waited_is_where_it_is) {
  using profile::CpuState;
  for (const bool off : {true, false}) {
    EXPECT_EQ(awake_state({2, 1, 1}, off), CpuState::running);
    EXPECT_EQ(awake_state({1, 1, 1}, off), CpuState::running);
    EXPECT_EQ(awake_state({0, 1, 1}, off), CpuState::runnable);
  }
  EXPECT_EQ(awake_state({0, 0, 0}, true), CpuState::runnable);
  EXPECT_EQ(awake_state({0, 0, 0}, false), CpuState::running);
}

TEST(AwakeState, without_the_kernels_counts_no_thread_is_reported_as_waiting) {
  using profile::CpuState;
  const process::SchedStat counted{5, 3, 2}, not_counted{5, 0, 0};
  EXPECT_EQ(held_state(counted, counted), CpuState::runnable);
  EXPECT_EQ(held_state(not_counted, not_counted), CpuState::running);
}

TEST(ThreadSample, time_not_known_to_be_run_or_slept_stays_so) {
  const ThreadSample last = sample_at(3, 5'000'000, 4'000'000);
  EXPECT_EQ(same_sample(last, 6'000'000, last.time.end, 1).time.ran, -1);
}

TEST(ThreadSample, equal_samples_add_up) {
  ThreadSample held = sample_at(3, 5'000'000, 4'000'000);
  held.time.cpu = 100;
  join(held, same_sample(held, 9'000'000, held.time.end, 4));
  EXPECT_EQ(held.time.samples, 5u);
  EXPECT_EQ(held.time.wall, 5'000'000);
  EXPECT_EQ(held.time.end, 9'000'000);
  EXPECT_EQ(held.time.cpu, 100);
}

}  // namespace
}  // namespace phlox::sampler
