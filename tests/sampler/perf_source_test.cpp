#include "phlox/sampler/perf_source.h"

#include <gtest/gtest.h>

namespace phlox::sampler {
namespace {

perf::SampleRecord sample(Nanoseconds time, bool registers = true) {
  perf::SampleRecord record;
  record.time = time;
  record.has_registers = registers;
  record.registers.pc = RemoteAddress(0x1000 + static_cast<uint64_t>(time));
  return record;
}
perf::SwitchRecord out(Nanoseconds time, bool preempted = true) {
  perf::SwitchRecord record;
  record.time = time;
  record.out = true;
  record.preempted = preempted;
  return record;
}
perf::SwitchRecord in(Nanoseconds time) {
  perf::SwitchRecord record;
  record.time = time;
  return record;
}

bool stands(std::initializer_list<perf::Record> records) {
  Preempted state;
  for (const auto& record : records) state.take(record);
  return state.stands();
}

TEST(Preempted, thread_that_was_pre_empted_straight_from_its_sample_stands_there) {
  Preempted state;
  state.take(in(50));
  state.take(sample(100));
  state.take(out(2'000));
  EXPECT_TRUE(state.stands());
  EXPECT_EQ(state.registers().pc.value, 0x1064u);
}

TEST(Preempted, thread_that_still_runs_does_not_stand) {
  EXPECT_FALSE(stands({}));
  EXPECT_FALSE(stands({in(50), sample(100)}));
}

TEST(Preempted, thread_that_has_run_since_does_not_stand) {
  EXPECT_FALSE(stands({sample(100), out(2'000), in(3'000)}));
  EXPECT_FALSE(stands({sample(100), out(2'000), in(3'000), out(4'000)}));
}

TEST(Preempted, thread_that_ran_on_after_its_sample_does_not_stand_where_it_was_sampled) {
  EXPECT_FALSE(stands({sample(100), out(100 + Preempted::kAtOnce + 1)}));
}

TEST(Preempted, thread_that_went_to_sleep_by_itself_does_not_stand_where_it_was_sampled) {
  EXPECT_FALSE(stands({sample(100), out(2'000, false)}));
}

TEST(Preempted, sample_without_user_registers_is_none) {
  EXPECT_FALSE(stands({sample(100, false), out(2'000)}));
}

TEST(Preempted, lost_or_damaged_records_leave_nothing_to_rely_on) {
  EXPECT_FALSE(stands({sample(100), perf::LostRecord{3}, out(2'000)}));
  EXPECT_FALSE(stands({sample(100), out(2'000), perf::OtherRecord{9, true}}));
}

TEST(PerfCapture, five_hundred_threads_on_64_cpus_stay_within_the_default_limits) {
  // ulimit -n 1024, kernel.perf_event_mlock_kb 516 a CPU, ulimit -l 8192.
  const size_t most = PerfCapture::most_events(1024, 516, 64, 8192 * 1024);
  EXPECT_GE(most, 64u);  // as many as can run at once
  EXPECT_LE(most, 1024u - 500u);
  EXPECT_LE(most * (PerfCapture::kRingBytes + 4096), (516u * 64 + 8192) * 1024);
}

TEST(PerfCapture, little_that_may_be_locked_means_few_events) {
  EXPECT_LE(PerfCapture::most_events(1024, 0, 1, 64 * 1024) * (PerfCapture::kRingBytes + 4096), 64u * 1024);
  EXPECT_EQ(PerfCapture::most_events(1024, 0, 1, 0), 0u);
  EXPECT_EQ(PerfCapture::most_events(3, 516, 64, 8192 * 1024), 0u);
}

TEST(PerfCapture, numbers_without_a_limit_do_not_overflow) {
  EXPECT_GT(PerfCapture::most_events(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}), 0u);
}

}  // namespace
}  // namespace phlox::sampler
