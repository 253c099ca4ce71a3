#include "phlox/sampler/observe/sample_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "phlox/sampler/capture/observed_thread.h"

namespace phlox::sampler {
namespace {

using profile::CpuState;

constexpr Nanoseconds kTurn = 1'000'000;

// What a consumer would take out of the ring.
struct Sent {
  ThreadSample sample;
  std::vector<CodeLocation> fresh;
};

class SampleLogs : public testing::Test {
 protected:
  SampleLogs() {
    thread_.index = 7;
    thread_.probe = std::make_unique<process::ThreadProbe>(::getpid(), ::gettid());
    thread_.seen = *thread_.probe->schedstat();
  }

  ThreadSample found(CpuState state) {
    now_ += kTurn;
    ThreadSample sample = sample_at(thread_.index, now_, thread_.last_time);
    sample.state.cpu_state = state;
    return sample;
  }
  void see(CpuState state, std::vector<CodeLocation> stack) {
    thread_.saw(log_, found(state), thread_.seen, ++tick_, &stack, {});
  }
  // Turns in which it was not asked, and one in which the kernel said that it has not run.
  uint64_t sleeps(uint64_t turns) {
    now_ += static_cast<Nanoseconds>(turns) * kTurn;
    tick_ += turns;
    return thread_.did_not_run(log_, thread_.seen, tick_, now_);
  }
  std::vector<Sent> sent() {
    std::vector<Sent> out;
    for (auto record = ring_.front(); record.data() != nullptr; ring_.pop(), record = ring_.front()) {
      RecordKind kind;
      std::memcpy(&kind, record.data(), sizeof kind);
      last_kind_ = kind;
      if (kind != RecordKind::sample) continue;
      Sent one;
      std::memcpy(&one.sample, record.data(), sizeof one.sample);
      one.fresh.resize(one.sample.stack.fresh);
      std::memcpy(one.fresh.data(), record.data() + sizeof one.sample,
                  one.fresh.size() * sizeof(CodeLocation));
      out.push_back(std::move(one));
    }
    return out;
  }

  Ring ring_{1 << 16};
  SampleLog log_{ring_};
  ObservedThread thread_;
  Nanoseconds now_ = 0;
  uint64_t tick_ = 0;
  RecordKind last_kind_ = RecordKind::sample;
};

TEST_F(SampleLogs, of_a_stack_is_sent_what_differs_from_the_one_before) {
  see(CpuState::running, {{1, 0}, {2, 4}, {3, 6}});
  see(CpuState::running, {{1, 0}, {2, 4}, {4, 0}, {5, 2}});
  see(CpuState::running, {{1, 0}});
  const auto samples = sent();
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[0].sample.stack.keep, 0U);
  EXPECT_EQ(samples[0].fresh.size(), 3U);
  EXPECT_EQ(samples[1].sample.stack.keep, 2U);
  EXPECT_EQ(samples[1].fresh, (std::vector<CodeLocation>{{4, 0}, {5, 2}}));
  EXPECT_EQ(samples[2].sample.stack.keep, 1U);
  EXPECT_TRUE(samples[2].fresh.empty());
}

TEST_F(SampleLogs, equal_samples_are_one_record_and_lose_no_time) {
  for (int i = 0; i < 5; ++i) see(CpuState::running, {{1, 0}});
  EXPECT_EQ(sent().size(), 1U) << "the others are held back";
  log_.flush(thread_);
  const auto samples = sent();
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].sample.time.samples, 4U);
  EXPECT_EQ(samples[0].sample.time.wall, 4 * kTurn);
  EXPECT_EQ(samples[0].sample.stack.keep, 1U);
  log_.flush(thread_);
  EXPECT_TRUE(sent().empty());
}

TEST_F(SampleLogs, nothing_is_held_back_for_longer_than_a_tenth_of_a_second) {
  see(CpuState::running, {{1, 0}});
  for (Nanoseconds held = 0; held < kHoldBack; held += kTurn) see(CpuState::running, {{1, 0}});
  EXPECT_EQ(sent().size(), 2U);
}

TEST_F(SampleLogs, a_thread_that_did_not_run_is_seen_as_before_for_all_turns_that_were_spared) {
  see(CpuState::blocked, {{1, 0}});
  EXPECT_TRUE(thread_.was_blocked);
  EXPECT_EQ(sleeps(12), 12U);
  EXPECT_EQ(thread_.idle_samples, 1U);
  log_.flush(thread_);
  const auto samples = sent();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[1].sample.time.samples, 12U);
  EXPECT_EQ(samples[1].sample.time.wall, 12 * kTurn);
  EXPECT_EQ(samples[1].sample.state.cpu_state, CpuState::blocked);
}

TEST_F(SampleLogs, cpu_time_waits_for_a_stack_that_ran) {
  thread_.cpu_carried = 300;
  see(CpuState::blocked, {{1, 0}});
  see(CpuState::running, {{2, 0}});
  const auto samples = sent();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].sample.time.cpu, 0);
  EXPECT_EQ(samples[1].sample.time.cpu, 300);
}

TEST_F(SampleLogs, cpu_time_of_a_thread_that_is_never_found_running_again_goes_to_its_last_stack) {
  see(CpuState::blocked, {{1, 0}});
  thread_.cpu_carried = 300;
  log_.end(thread_, now_);
  const auto samples = sent();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[1].sample.time.cpu, 300);
  EXPECT_EQ(samples[1].sample.time.samples, 0U);
  EXPECT_EQ(last_kind_, RecordKind::thread_end);
}

TEST_F(SampleLogs, after_a_rejected_sample_the_stack_is_sent_whole) {
  see(CpuState::running, {{1, 0}, {2, 0}});
  now_ += kTurn;
  thread_.reject(log_, profile::GilState::unknown, now_, Rejected::moved);
  EXPECT_EQ(thread_.empty_samples, 1U);
  see(CpuState::running, {{1, 0}, {2, 0}});
  EXPECT_EQ(thread_.empty_samples, 0U);
  const auto samples = sent();
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[1].sample.state.rejected, Rejected::moved);
  EXPECT_EQ(samples[1].sample.time.wall, kTurn);
  EXPECT_EQ(samples[2].sample.stack.keep, 0U);
  EXPECT_EQ(samples[2].fresh.size(), 2U);
}

TEST_F(SampleLogs, what_the_ring_has_no_room_for_is_counted_and_the_next_stack_is_sent_whole) {
  std::vector<CodeLocation> deep(20'000, CodeLocation{1, 0});  // 160 KB
  see(CpuState::running, {{1, 0}});
  sent();
  see(CpuState::running, deep);
  EXPECT_EQ(log_.lost(), 1U);
  EXPECT_FALSE(thread_.has_stack);
  see(CpuState::running, {{1, 0}, {2, 0}});
  const auto samples = sent();
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].sample.stack.keep, 0U);
  EXPECT_EQ(samples[0].fresh.size(), 2U);
}

// A call's arguments may be the same while what they mean is another by then.
TEST_F(SampleLogs, a_wait_goes_on_as_long_as_its_thread_has_not_run) {
  const std::vector<CodeLocation> stack{{1, 0}};
  const auto waits = [&] {
    ThreadSample sample = found(CpuState::blocked);
    sample.state.waits_for = {process::WaitsFor::Kind::descriptor, 3, 0};
    sample.time.wait_since = sample.time.end;
    thread_.saw(log_, sample, thread_.seen, ++tick_, &stack, {});
  };
  waits();
  const Nanoseconds first = now_;
  sleeps(1);
  log_.flush(thread_);
  waits();
  const Nanoseconds second = now_;
  log_.flush(thread_);
  sleeps(1);
  log_.flush(thread_);
  waits();
  waits();
  log_.flush(thread_);
  const auto samples = sent();
  ASSERT_EQ(samples.size(), 5U);
  EXPECT_EQ(samples[0].sample.time.wait_since, first);
  EXPECT_EQ(samples[1].sample.time.wait_since, first);
  EXPECT_EQ(samples[2].sample.time.wait_since, second);
  EXPECT_EQ(samples[3].sample.time.wait_since, second);
  EXPECT_EQ(samples[4].sample.time.wait_since, 0) << "two waits";
  for (const Sent& one : samples) EXPECT_EQ(one.sample.state.waits_for.number, 3);
}

}  // namespace
}  // namespace phlox::sampler
