#include "phlox/sampler/capture/look_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

namespace phlox::sampler {
namespace {

using profile::CpuState;

constexpr Nanoseconds kTurn = 1'000'000;

// What a consumer would take out of the ring.
struct Sent {
  LookRecord look;
  std::vector<CodeLocation> fresh;
};

class LookLogs : public testing::Test {
 protected:
  LookLogs() {
    thread_.index = 7;
    thread_.probe = std::make_unique<target::ThreadProbe>(::getpid(), ::gettid());
    thread_.seen = *thread_.probe->schedstat();
  }

  LookRecord found(CpuState state) {
    now_ += kTurn;
    LookRecord look = look_at(thread_.index, now_, thread_.last_time);
    look.cpu_state = state;
    return look;
  }
  void see(CpuState state, std::vector<CodeLocation> stack) {
    log_.saw(thread_, found(state), thread_.seen, ++tick_, &stack, {});
  }
  // Turns in which it was not asked, and one in which the kernel said that it has not run.
  uint64_t sleeps(uint64_t turns) {
    now_ += static_cast<Nanoseconds>(turns) * kTurn;
    tick_ += turns;
    return log_.did_not_run(thread_, thread_.seen, tick_, now_);
  }
  std::vector<Sent> sent() {
    std::vector<Sent> out;
    for (auto record = ring_.front(); record.data() != nullptr; ring_.pop(), record = ring_.front()) {
      RecordKind kind;
      std::memcpy(&kind, record.data(), sizeof kind);
      last_kind_ = kind;
      if (kind != RecordKind::look) continue;
      Sent one;
      std::memcpy(&one.look, record.data(), sizeof one.look);
      one.fresh.resize(one.look.fresh);
      std::memcpy(one.fresh.data(), record.data() + sizeof one.look, one.fresh.size() * sizeof(CodeLocation));
      out.push_back(std::move(one));
    }
    return out;
  }

  Ring ring_{1 << 16};
  LookLog log_{ring_};
  ObservedThread thread_;
  Nanoseconds now_ = 0;
  uint64_t tick_ = 0;
  RecordKind last_kind_ = RecordKind::look;
};

TEST_F(LookLogs, of_a_stack_is_sent_what_differs_from_the_one_before) {
  see(CpuState::running, {{1, 0}, {2, 4}, {3, 6}});
  see(CpuState::running, {{1, 0}, {2, 4}, {4, 0}, {5, 2}});
  see(CpuState::running, {{1, 0}});
  const auto looks = sent();
  ASSERT_EQ(looks.size(), 3U);
  EXPECT_EQ(looks[0].look.keep, 0U);
  EXPECT_EQ(looks[0].fresh.size(), 3U);
  EXPECT_EQ(looks[1].look.keep, 2U);
  EXPECT_EQ(looks[1].fresh, (std::vector<CodeLocation>{{4, 0}, {5, 2}}));
  EXPECT_EQ(looks[2].look.keep, 1U);
  EXPECT_TRUE(looks[2].fresh.empty());
}

TEST_F(LookLogs, looks_alike_are_one_record_and_lose_no_time) {
  for (int i = 0; i < 5; ++i) see(CpuState::running, {{1, 0}});
  EXPECT_EQ(sent().size(), 1U) << "the others are held back";
  log_.flush(thread_);
  const auto looks = sent();
  ASSERT_EQ(looks.size(), 1U);
  EXPECT_EQ(looks[0].look.looks, 4U);
  EXPECT_EQ(looks[0].look.wall, 4 * kTurn);
  EXPECT_EQ(looks[0].look.keep, 1U);
  log_.flush(thread_);
  EXPECT_TRUE(sent().empty());
}

TEST_F(LookLogs, nothing_is_held_back_for_longer_than_a_tenth_of_a_second) {
  see(CpuState::running, {{1, 0}});
  for (Nanoseconds held = 0; held < kHoldBack; held += kTurn) see(CpuState::running, {{1, 0}});
  EXPECT_EQ(sent().size(), 2U);
}

TEST_F(LookLogs, a_thread_that_did_not_run_is_seen_as_before_for_all_turns_that_were_spared) {
  see(CpuState::blocked, {{1, 0}});
  EXPECT_TRUE(thread_.was_blocked);
  EXPECT_EQ(sleeps(12), 12U);
  EXPECT_EQ(thread_.idle_looks, 1U);
  log_.flush(thread_);
  const auto looks = sent();
  ASSERT_EQ(looks.size(), 2U);
  EXPECT_EQ(looks[1].look.looks, 12U);
  EXPECT_EQ(looks[1].look.wall, 12 * kTurn);
  EXPECT_EQ(looks[1].look.cpu_state, CpuState::blocked);
}

TEST_F(LookLogs, cpu_time_waits_for_a_stack_that_ran) {
  thread_.cpu_carried = 300;
  see(CpuState::blocked, {{1, 0}});
  see(CpuState::running, {{2, 0}});
  const auto looks = sent();
  ASSERT_EQ(looks.size(), 2U);
  EXPECT_EQ(looks[0].look.cpu, 0);
  EXPECT_EQ(looks[1].look.cpu, 300);
}

TEST_F(LookLogs, cpu_time_of_a_thread_that_is_never_found_running_again_goes_to_its_last_stack) {
  see(CpuState::blocked, {{1, 0}});
  thread_.cpu_carried = 300;
  log_.end(thread_, now_);
  const auto looks = sent();
  ASSERT_EQ(looks.size(), 2U);
  EXPECT_EQ(looks[1].look.cpu, 300);
  EXPECT_EQ(looks[1].look.looks, 0U);
  EXPECT_EQ(last_kind_, RecordKind::thread_end);
}

TEST_F(LookLogs, after_a_rejected_look_the_stack_is_sent_whole) {
  see(CpuState::running, {{1, 0}, {2, 0}});
  now_ += kTurn;
  log_.reject(thread_, profile::GilState::unknown, now_, Rejected::moved);
  EXPECT_EQ(thread_.vain_looks, 1U);
  see(CpuState::running, {{1, 0}, {2, 0}});
  EXPECT_EQ(thread_.vain_looks, 0U);
  const auto looks = sent();
  ASSERT_EQ(looks.size(), 3U);
  EXPECT_EQ(looks[1].look.rejected, Rejected::moved);
  EXPECT_EQ(looks[1].look.wall, kTurn);
  EXPECT_EQ(looks[2].look.keep, 0U);
  EXPECT_EQ(looks[2].fresh.size(), 2U);
}

TEST_F(LookLogs, what_the_ring_has_no_room_for_is_counted_and_the_next_stack_is_sent_whole) {
  std::vector<CodeLocation> deep(20'000, CodeLocation{1, 0});  // 160 KB
  see(CpuState::running, {{1, 0}});
  sent();
  see(CpuState::running, deep);
  EXPECT_EQ(log_.lost(), 1U);
  EXPECT_FALSE(thread_.has_stack);
  see(CpuState::running, {{1, 0}, {2, 0}});
  const auto looks = sent();
  ASSERT_EQ(looks.size(), 1U);
  EXPECT_EQ(looks[0].look.keep, 0U);
  EXPECT_EQ(looks[0].fresh.size(), 2U);
}

// A call's arguments may be the same while what they mean is another by then.
TEST_F(LookLogs, a_wait_goes_on_as_long_as_its_thread_has_not_run) {
  const std::vector<CodeLocation> stack{{1, 0}};
  const auto waits = [&] {
    LookRecord look = found(CpuState::blocked);
    look.awaits = {target::Awaits::Kind::descriptor, 3, 0};
    look.wait_since = look.time;
    log_.saw(thread_, look, thread_.seen, ++tick_, &stack, {});
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
  const auto looks = sent();
  ASSERT_EQ(looks.size(), 5U);
  EXPECT_EQ(looks[0].look.wait_since, first);
  EXPECT_EQ(looks[1].look.wait_since, first);
  EXPECT_EQ(looks[2].look.wait_since, second);
  EXPECT_EQ(looks[3].look.wait_since, second);
  EXPECT_EQ(looks[4].look.wait_since, 0) << "two waits";
  for (const Sent& one : looks) EXPECT_EQ(one.look.awaits.number, 3);
}

}  // namespace
}  // namespace phlox::sampler
