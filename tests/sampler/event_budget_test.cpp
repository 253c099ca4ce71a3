#include "phlox/sampler/capture/event_budget.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace phlox::sampler {
namespace {

constexpr Nanoseconds kMillisecond = kSecond / 1000;
constexpr uint64_t kEach = 12288;  // perf_source.h

TEST(EventBudget, gives_to_each_thread_while_there_is_room) {
  EventBudget budget(2);
  for (const pid_t tid : {1, 2}) {
    EXPECT_TRUE(budget.ask(tid, 0).open);
    budget.opened(tid, 0);
  }
  EXPECT_FALSE(budget.ask(3, 0).open);
  EXPECT_EQ(budget.without(), 1u);
  budget.closed(1);
  EXPECT_TRUE(budget.ask(3, 1).open);
  EXPECT_EQ(budget.without(), 0u);
}

TEST(EventBudget, event_of_a_sleeping_thread_goes_to_a_running_one) {
  EventBudget budget(2);
  budget.opened(1, 0);
  budget.opened(2, 0);
  budget.ran(2, EventBudget::kSpare);
  EXPECT_FALSE(budget.ask(3, EventBudget::kSpare - 1).open);
  const auto grant = budget.ask(3, EventBudget::kSpare);
  EXPECT_TRUE(grant.open);
  EXPECT_EQ(grant.close_first, 1);
}

TEST(EventBudget, a_thread_that_always_runs_yields_after_a_turn) {
  EventBudget budget(1);
  budget.opened(1, 0);
  for (Nanoseconds now = 0; now < EventBudget::kTurn; now += kMillisecond) {
    budget.ran(1, now);
    ASSERT_FALSE(budget.ask(2, now).open) << now;
  }
  EXPECT_EQ(budget.ask(2, EventBudget::kTurn).close_first, 1);
}

TEST(EventBudget, an_event_that_no_thread_wants_is_closed_too) {
  EventBudget budget(8);
  budget.opened(1, 0);
  budget.opened(2, 0);
  budget.ran(2, kSecond);
  EXPECT_EQ(budget.take_idle(EventBudget::kIdle), (std::vector<pid_t>{1}));
  EXPECT_EQ(budget.size(), 1u);
}

TEST(EventBudget, kernel_s_refusal_is_the_limit_from_then_on) {
  EventBudget budget(8);
  budget.opened(1, 0);
  EXPECT_TRUE(budget.ask(2, 0).open);
  budget.no_more();
  EXPECT_FALSE(budget.ask(2, 1).open);
  EXPECT_EQ(budget.most(), 1u);
}

TEST(EventBudget, without_room_for_any_no_thread_gets_one) {
  EventBudget budget(0);
  EXPECT_FALSE(budget.ask(1, 10 * kSecond).open);
}

// Threads that sleep and run, sampled a thousand times a second, as with sampler and kernel.
class Simulation {
 public:
  Simulation(size_t threads, size_t cpus, size_t most) : cpus_(cpus), budget_(most) {
    for (size_t i = 0; i < threads; ++i) sleeping_.push_back(static_cast<pid_t>(i + 1));
  }

  // `busy`: how many run at once. They run for some 5 to 50 ms, or, `for_ever`, to the end.
  void run(Nanoseconds time, size_t busy, bool for_ever) {
    busy = std::min(busy, cpus_);
    const Nanoseconds end = now_ + time;
    for (; now_ < end; now_ += kMillisecond) {
      for (auto at = running_.begin(); at != running_.end();) {
        if (at->second > now_) {
          ++at;
          continue;
        }
        sleeping_.push_back(at->first);
        at = running_.erase(at);
      }
      while (running_.size() < busy && !sleeping_.empty()) {
        std::swap(sleeping_[random_() % sleeping_.size()], sleeping_.back());
        const Nanoseconds until =
            for_ever ? end : now_ + static_cast<Nanoseconds>(5 + random_() % 45) * kMillisecond;
        running_[sleeping_.back()] = until;
        sleeping_.pop_back();
      }
      sample();
    }
  }

  size_t with_event() const {
    size_t with = 0;
    for (const auto& [tid, until] : running_) with += events_.contains(tid);
    return with;
  }
  size_t running() const { return running_.size(); }
  const EventBudget& budget() const { return budget_; }
  size_t opened = 0, most_open = 0, samples = 0, samples_with = 0;
  std::set<pid_t> ever;

 private:
  void sample() {
    for (const pid_t tid : budget_.take_idle(now_)) ASSERT_EQ(events_.erase(tid), 1u);
    for (const auto& [tid, until] : running_) {
      ++samples;
      if (events_.contains(tid)) {
        ++samples_with;
        budget_.ran(tid, now_);
        continue;
      }
      const auto grant = budget_.ask(tid, now_);
      if (grant.close_first != 0) {
        ASSERT_EQ(events_.erase(grant.close_first), 1u);
      }
      if (!grant.open) continue;
      ++opened;
      ever.insert(tid);
      events_.insert(tid);
      budget_.opened(tid, now_);
      ASSERT_LE(events_.size(), budget_.most());
      ASSERT_EQ(events_.size(), budget_.size());
      most_open = std::max(most_open, events_.size());
    }
  }

  size_t cpus_;
  EventBudget budget_;
  std::mt19937 random_{7};
  Nanoseconds now_ = 0;
  std::vector<pid_t> sleeping_;
  std::map<pid_t, Nanoseconds> running_;  // until when
  std::set<pid_t> events_;
};

TEST(EventBudget, five_hundred_threads_on_64_cpus_stay_within_the_default_limits) {
  // ulimit -n 1024, kernel.perf_event_mlock_kb 516 a CPU, ulimit -l 8192.
  const size_t most = most_events(1024, 516, 64, 8192 * 1024, kEach);
  EXPECT_GE(most, 64u);  // as many as can run at once
  EXPECT_LE(most, 1024u - 500u);
  EXPECT_LE(most * kEach, (516u * 64 + 8192) * 1024);
  Simulation some(500, 64, most);
  some.run(20 * kSecond, 64, false);
  // Other threads every few milliseconds: opening after each of them would take a CPU's time. No fewer than
  // there are events for, and every thread in turn.
  EXPECT_GT(some.samples_with * 500, some.samples * most) << some.samples_with << " of " << some.samples;
  EXPECT_EQ(some.ever.size(), 500u);
  EXPECT_LE(some.opened, 256u + 20u * 160u);
  Simulation few(500, 64, most);
  few.run(20 * kSecond, 8, false);
  EXPECT_GT(few.samples_with * 100, few.samples * 90) << few.samples_with << " of " << few.samples;
}

TEST(EventBudget, all_cpus_busy_for_ever_have_an_event_each) {
  Simulation all(500, 64, most_events(1024, 516, 64, 8192 * 1024, kEach));
  all.run(5 * kSecond, 64, true);
  EXPECT_EQ(all.with_event(), 64u);
  EXPECT_EQ(all.opened, 64u);
  EXPECT_EQ(all.budget().without(), 0u);
}

TEST(EventBudget, more_that_run_than_events_take_turns) {
  // ulimit -l 64 of older systems, one CPU's worth of locked memory.
  const size_t most = most_events(1024, 516, 1, 64 * 1024, kEach);
  ASSERT_LT(most, 64u);
  Simulation all(64, 64, most);
  all.run(30 * kSecond, 64, true);
  EXPECT_EQ(all.ever.size(), 64u);
  EXPECT_EQ(all.with_event(), most);
  EXPECT_GE(all.budget().without(), 64u - most - EventBudget::kChangesInPace);
  EXPECT_LE(all.opened, most + 30u * 160u);
}

TEST(EventBudget, events_of_a_pool_that_went_to_sleep_go_to_the_next_one) {
  Simulation pools(500, 64, 32);
  pools.run(5 * kSecond, 32, true);
  EXPECT_EQ(pools.with_event(), 32u);
  pools.run(kSecond, 32, true);  // others woke up
  EXPECT_EQ(pools.with_event(), 32u);
  EXPECT_EQ(pools.running(), 32u);
}

TEST(MostEvents, little_that_may_be_locked_means_few_events) {
  EXPECT_LE(most_events(1024, 0, 1, 64 * 1024, kEach) * kEach, 64u * 1024);
  EXPECT_EQ(most_events(1024, 0, 1, 0, kEach), 0u);
  EXPECT_EQ(most_events(3, 516, 64, 8192 * 1024, kEach), 0u);
}

TEST(MostEvents, numbers_without_a_limit_do_not_overflow) {
  EXPECT_GT(most_events(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, kEach), 0u);
}

}  // namespace
}  // namespace phlox::sampler
