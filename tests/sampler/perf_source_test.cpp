#include "phlox/sampler/capture/perf_source.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <array>

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

TEST(Preempted, thread_that_was_preempted_by_its_sample_is_held_there) {
  Preempted state;
  state.take(in(50));
  state.take(sample(100));
  state.take(out(2'000));
  EXPECT_TRUE(state.stands());
  EXPECT_EQ(state.registers().pc.value, 0x1064u);
}

TEST(Preempted, thread_that_still_runs_is_not_held) {
  EXPECT_FALSE(stands({}));
  EXPECT_FALSE(stands({in(50), sample(100)}));
}

TEST(Preempted, thread_that_has_run_since_is_not_held) {
  EXPECT_FALSE(stands({sample(100), out(2'000), in(3'000)}));
  EXPECT_FALSE(stands({sample(100), out(2'000), in(3'000), out(4'000)}));
}

TEST(Preempted, thread_that_ran_after_its_sample_is_not_held_there) {
  EXPECT_FALSE(stands({sample(100), out(100 + Preempted::kAtOnce + 1)}));
}

TEST(Preempted, thread_that_went_to_sleep_is_not_held_where_it_was_sampled) {
  EXPECT_FALSE(stands({sample(100), out(2'000, false)}));
}

TEST(Preempted, sample_without_user_registers_is_none) {
  EXPECT_FALSE(stands({sample(100, false), out(2'000)}));
}

TEST(Preempted, lost_or_damaged_records_leave_nothing_to_rely_on) {
  EXPECT_FALSE(stands({sample(100), perf::LostRecord{3}, out(2'000)}));
  EXPECT_FALSE(stands({sample(100), out(2'000), perf::OtherRecord{9, true}}));
}

Preempted::Doing doing(std::initializer_list<perf::Record> records) {
  Preempted state;
  for (const auto& record : records) state.take(record);
  return state.doing();
}

TEST(Preempted, last_record_says_whether_it_could_run) {
  using Doing = Preempted::Doing;
  EXPECT_EQ(doing({}), Doing::unknown);
  EXPECT_EQ(doing({sample(100)}), Doing::awake);
  EXPECT_EQ(doing({sample(100), out(200)}), Doing::awake);
  EXPECT_EQ(doing({sample(100), out(200, false)}), Doing::asleep);
  EXPECT_EQ(doing({out(200, false), in(300)}), Doing::awake);
  EXPECT_EQ(doing({out(200, false), sample(300, false)}), Doing::awake);
}

TEST(Preempted, nothing_is_said_of_what_it_does_after_a_loss_or_its_end) {
  using Doing = Preempted::Doing;
  EXPECT_EQ(doing({out(100, false), perf::LostRecord{3}}), Doing::unknown);
  EXPECT_EQ(doing({in(100), perf::OtherRecord{9, true}}), Doing::unknown);
  perf::TaskRecord task;
  EXPECT_EQ(doing({in(100), task}), Doing::awake);
  task.exit = true;
  EXPECT_EQ(doing({in(100), task}), Doing::unknown);
  Preempted state;
  state.take(in(100));
  state.forget();
  EXPECT_EQ(state.doing(), Doing::unknown);
}

TEST(Preempted, last_record_says_where_it_is) {
  Preempted state;
  EXPECT_EQ(state.cpu(), -1);
  auto taken = sample(100);
  taken.cpu = 3;
  state.take(taken);
  EXPECT_EQ(state.cpu(), 3);
  auto elsewhere = in(200);
  elsewhere.cpu = 5;
  state.take(elsewhere);
  state.forget();
  EXPECT_EQ(state.cpu(), 5);
}

TEST(Preempted, kernel_frames_of_the_sample_stay_until_the_next_one) {
  const std::array<uint64_t, 3> chain = {static_cast<uint64_t>(PERF_CONTEXT_KERNEL), 0xffffffff81000010,
                                         0xffffffff81000020};
  Preempted state;
  auto taken = sample(100);
  taken.callchain = std::as_bytes(std::span(chain));
  state.take(taken);
  state.take(out(200));
  state.forget();
  ASSERT_EQ(state.kernel_frames().size(), 2u);
  EXPECT_EQ(state.kernel_frames()[0], chain[1]);
  state.take(sample(300));
  EXPECT_TRUE(state.kernel_frames().empty());
}

}  // namespace
}  // namespace phlox::sampler
