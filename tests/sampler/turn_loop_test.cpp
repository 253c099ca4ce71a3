// When turns are taken, on a played clock: a turn takes as long as the test says, and so does a wait.
#include "phlox/sampler/session/turn_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/played_recording.h"

namespace phlox::sampler {
namespace {

using Next = TurnLoop::Next;

constexpr Nanoseconds kMicrosecond = kSecond / 1'000'000, kMillisecond = kSecond / 1'000;

class TurnLoops : public testing::Test, protected TurnLoop::Turns {
 protected:
  // By the schedule, on the played clock.
  class Timer : public TurnLoop::Waiting {
   public:
    explicit Timer(Host& host) : host_(host) {}
    Next wait(TurnLoop& loop) override {
      loop.lock().unlock();
      host_.sleep_until(loop.schedule().next(loop.now()) + std::exchange(late, 0));
      loop.lock().lock();
      return Next::turn;
    }
    Nanoseconds late = 0;  // the next wake-up

   private:
    Host& host_;
  };
  // Answers what the test says, and ends with that.
  class Script : public TurnLoop::Waiting {
   public:
    explicit Script(std::vector<Next> answers) : answers_(std::move(answers)) {}
    Next wait(TurnLoop&) override { return asked < answers_.size() ? answers_[asked++] : Next::another_way; }
    size_t asked = 0;

   private:
    std::vector<Next> answers_;
  };

  void make(double rate_hz, std::optional<double> max_percent = {}) {
    SourceNumbers numbers;
    numbers.rate_hz = rate_hz;
    const auto interval = static_cast<Nanoseconds>(1e9 / (rate_hz > 0 ? rate_hz : 500'000));
    loop_.emplace(*host_, Budget(max_percent, rate_hz), Schedule(interval, 1), numbers,
                  [this](const SourceNumbers& now) { published_.push_back(now); });
  }
  void run(double seconds) {
    play_.at(seconds, [this] { stop_ = true; });
    loop_->run(*this, {&timer_}, Next::turn, stop_);
  }

  void take(Nanoseconds now) override {
    turns_.push_back(now);
    play_.thread_cpu += takes_;
    host_->sleep_until(now + takes_ + std::exchange(preempted_, 0));
    ends_.push_back(host_->now());
  }
  bool is_gone() const override { return gone_; }
  Nanoseconds stopped() const override { return stopped_; }
  void finish() override { ++finished_; }

  const SourceNumbers& numbers() { return loop_->numbers(); }
  size_t turns_between(double from, double to) const {
    return static_cast<size_t>(std::count_if(turns_.begin(), turns_.end(), [&](Nanoseconds at) {
      return at >= play_.time(from) && at < play_.time(to);
    }));
  }
  // The shortest time that the program had between two turns.
  Nanoseconds shortest_pause() const {
    Nanoseconds shortest = kSecond;
    for (size_t i = 1; i < turns_.size(); ++i) shortest = std::min(shortest, turns_[i] - ends_[i - 1]);
    return shortest;
  }

  test::Play play_;
  std::unique_ptr<Host> host_ = play_.host();
  Timer timer_{*host_};
  std::optional<TurnLoop> loop_;
  std::atomic<bool> stop_{false};
  Nanoseconds takes_ = 20 * kMicrosecond;
  Nanoseconds preempted_ = 0;  // during the next turn
  Nanoseconds stopped_ = 0;
  bool gone_ = false;
  int finished_ = 0;
  std::vector<Nanoseconds> turns_, ends_;
  std::vector<SourceNumbers> published_;
};

// --- the rate

TEST_F(TurnLoops, the_rate_is_kept) {
  make(200);
  run(10);
  EXPECT_NEAR(static_cast<double>(turns_.size()), 2000, 40);
  EXPECT_EQ(numbers().ticks_missed, 0U);
  EXPECT_EQ(numbers().rate_hz, 200);
}

TEST_F(TurnLoops, moments_that_pass_before_a_late_turn_are_missed_and_not_caught_up) {
  make(200);
  play_.at(1, [this] { timer_.late = kSecond; });
  run(10);
  EXPECT_NEAR(static_cast<double>(numbers().ticks_missed), 200, 10);
  EXPECT_NEAR(static_cast<double>(turns_.size() + numbers().ticks_missed), 2000, 40);
  EXPECT_NEAR(static_cast<double>(turns_between(3, 4)), 200, 20);
}

TEST_F(TurnLoops, a_turn_that_loses_its_cpu_makes_the_next_one_late) {
  make(200);
  play_.at(1, [this] { preempted_ = kSecond; });
  run(10);
  EXPECT_NEAR(static_cast<double>(numbers().ticks_missed), 200, 10);
  EXPECT_LT(numbers().cpu, 50 * kMillisecond) << "it took nothing from the program";
}

// --- what a turn leaves to the program

TEST_F(TurnLoops, after_a_long_turn_the_program_has_its_cpu_for_as_long) {
  make(1000);
  takes_ = 5 * kMillisecond;
  run(2);
  EXPECT_GE(shortest_pause(), takes_);
  EXPECT_NEAR(static_cast<double>(turns_.size()), 200, 20);
  EXPECT_EQ(numbers().rests, turns_.size()) << "also the last one";
  EXPECT_EQ(numbers().ticks_missed, 0U) << "there was no room for these samples";
}

TEST_F(TurnLoops, without_a_rate_half_of_the_time_is_the_programs) {
  make(0);
  takes_ = 100 * kMicrosecond;
  run(1);
  EXPECT_GE(shortest_pause(), takes_);
  EXPECT_GT(turns_.size(), 4000U);
  EXPECT_EQ(numbers().ticks_missed, 0U);
}

TEST_F(TurnLoops, stops_of_its_threads_are_time_taken_from_the_program) {
  make(100);
  takes_ = 0;
  play_.at(0.5, [this] { stopped_ = 3 * kMillisecond; });
  run(1);
  const auto wake_ups = static_cast<double>(turns_.size()) * 2.5e3;
  EXPECT_NEAR(static_cast<double>(numbers().target_time), 3e6 + wake_ups, 1e3);
}

TEST_F(TurnLoops, the_lock_is_free_while_the_program_has_its_time) {
  make(1000);
  takes_ = 20 * kMillisecond;
  bool was_free = false;
  play_.at(0.03, [&] {
    was_free = loop_->lock().try_lock();
    if (was_free) loop_->lock().unlock();
  });
  run(0.1);
  EXPECT_TRUE(was_free);
}

// --- the budget

TEST_F(TurnLoops, a_budget_that_is_reached_lowers_the_rate_and_says_so) {
  make(1000, 2);
  takes_ = 200 * kMicrosecond;  // 20 %
  run(10);
  EXPECT_NEAR(static_cast<double>(loop_->schedule().interval()), 1e9 / numbers().rate_hz, 1);
  EXPECT_NEAR(static_cast<double>(turns_between(8, 10)), 180, 25);
  EXPECT_NEAR(numbers().rate_hz, static_cast<double>(turns_between(8, 10)) / 2, 20)
      << "what it says is what it does";
  EXPECT_LT(numbers().target_time, 10 * kSecond * 3 / 100);
  ASSERT_FALSE(published_.empty());
  EXPECT_EQ(published_.front().rate_hz, 1000);
  EXPECT_EQ(published_.back().rate_hz, numbers().rate_hz);
}

TEST_F(TurnLoops, threads_that_are_born_and_end_between_turns_lower_the_rate_and_raise_it) {
  make(1000, 2);
  takes_ = 10 * kMicrosecond;
  play_.at(3, [this] { takes_ = 200 * kMicrosecond; });
  play_.at(10, [this] { takes_ = 10 * kMicrosecond; });
  run(30);
  EXPECT_NEAR(static_cast<double>(turns_between(2, 3)), 1000, 60);
  EXPECT_LT(turns_between(8, 9), 110U);
  EXPECT_NEAR(static_cast<double>(turns_between(29, 30)), 1000, 60);
}

TEST_F(TurnLoops, one_dear_turn_is_paid_for_by_waiting) {
  make(200, 2);
  play_.at(5, [this] { takes_ = 40 * kMillisecond; });
  play_.at(5.02, [this] { takes_ = 20 * kMicrosecond; });
  run(10);
  EXPECT_LT(turns_between(5.1, 6), 5U);
  EXPECT_NEAR(static_cast<double>(turns_between(8, 9)), 200, 20);
  EXPECT_LT(numbers().target_time, 10 * kSecond * 2 / 100);
  EXPECT_GE(numbers().rests, 1U);
}

// --- what is reported

TEST_F(TurnLoops, numbers_are_published_twenty_times_a_second) {
  make(1000);
  run(3);
  EXPECT_NEAR(static_cast<double>(published_.size()), 60, 3);
  EXPECT_TRUE(std::is_sorted(published_.begin(), published_.end(),
                             [](const auto& a, const auto& b) { return a.cpu < b.cpu; }));
}

TEST_F(TurnLoops, all_of_its_cpu_time_is_measured_at_the_end) {
  make(100);
  run(1.23);
  EXPECT_EQ(numbers().cpu, play_.thread_cpu);
  EXPECT_EQ(numbers().cpu, static_cast<Nanoseconds>(turns_.size()) * takes_);
}

// --- the end

TEST_F(TurnLoops, a_program_that_is_gone_has_no_further_turn) {
  make(100);
  play_.at(0.5, [this] { gone_ = true; });
  run(60);
  EXPECT_LT(turns_.back(), play_.time(0.52)) << "the turn that finds it gone";
  EXPECT_EQ(finished_, 1);
  EXPECT_FALSE(stop_);
}

TEST_F(TurnLoops, asked_to_stop_while_it_waits_it_takes_no_further_turn) {
  make(2);
  run(5.1);
  EXPECT_LT(turns_.back(), play_.time(5.1));
  EXPECT_LT(play_.seconds(host_->now()), 5.1 + 0.75) << "after that wait";
  EXPECT_EQ(finished_, 1);
}

TEST_F(TurnLoops, asked_to_stop_while_the_program_has_its_time_it_does_not_wait_after_that) {
  make(1000);
  takes_ = kSecond;
  Script way({Next::turn, Next::turn});
  play_.at(1.5, [this] { stop_ = true; });
  loop_->run(*this, {&way}, Next::turn, stop_);
  EXPECT_EQ(turns_.size(), 1U);
  EXPECT_EQ(way.asked, 0U);
  EXPECT_EQ(finished_, 1);
}

TEST_F(TurnLoops, asked_to_stop_before_its_first_turn_it_takes_none) {
  make(100);
  stop_ = true;
  run(1);
  EXPECT_TRUE(turns_.empty());
  EXPECT_EQ(finished_, 1);
}

// --- ways of waiting

TEST_F(TurnLoops, the_first_way_that_is_possible_is_used) {
  make(100);
  Script rest({Next::another_way, Next::turn, Next::another_way}), event({Next::turn, Next::no_turn});
  loop_->run(*this, {&rest, &event}, Next::turn, stop_);
  EXPECT_EQ(turns_.size(), 3U) << "at the beginning, after an event, and after a rest";
  EXPECT_EQ(finished_, 1) << "no way is left";
  EXPECT_EQ(rest.asked, 3U);
  EXPECT_EQ(event.asked, 2U);
}

TEST_F(TurnLoops, a_worker_for_events_has_no_turn_without_one) {
  make(100);
  Script events({Next::no_turn, Next::no_turn, Next::turn, Next::no_turn});
  loop_->run(*this, {&events}, Next::no_turn, stop_);
  EXPECT_EQ(turns_.size(), 1U);
}

TEST_F(TurnLoops, after_long_turns_events_are_further_apart) {
  make(10'000);
  const Nanoseconds before = loop_->events_apart();
  takes_ = kMillisecond;
  Script events({Next::turn, Next::turn});
  loop_->run(*this, {&events}, Next::turn, stop_);
  EXPECT_EQ(before, kSecond / 10'000);
  EXPECT_GE(loop_->events_apart(), 2 * takes_);
}

TEST_F(TurnLoops, workers_share_the_rate_and_the_cost) {
  make(1000, 2);
  takes_ = 200 * kMicrosecond;
  run(5);
  const SourceNumbers first = numbers();
  std::atomic<bool> never{false};
  Script events({Next::turn});
  loop_->run(*this, {&events}, Next::no_turn, never);
  EXPECT_EQ(numbers().rate_hz, first.rate_hz);
  EXPECT_EQ(numbers().cpu, first.cpu + takes_);
}

}  // namespace
}  // namespace phlox::sampler
