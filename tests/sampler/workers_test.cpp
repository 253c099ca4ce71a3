#include "phlox/sampler/capture/workers.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <future>
#include <thread>
#include <vector>

namespace phlox::sampler {
namespace {

TEST(TurnLock, one_at_a_time_has_it) {
  TurnLock turn_lock;
  uint64_t count = 0;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 4; ++worker) {
    workers.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        while (!turn_lock.try_lock()) std::this_thread::yield();
        ++count;
        turn_lock.unlock();
      }
    });
  }
  for (auto& worker : workers) worker.join();
  EXPECT_EQ(count, 80'000U);
}

TEST(TurnLock, no_thread_waits_for_it_for_long) {
  TurnLock turn_lock;
  ASSERT_TRUE(turn_lock.try_lock());
  EXPECT_FALSE(turn_lock.try_lock());
  turn_lock.unlock();
  EXPECT_TRUE(turn_lock.try_lock());
}

bool is_woken(const Worker& worker) {
  pollfd wanted{worker.wake_up.get(), POLLIN, 0};
  return ::poll(&wanted, 1, 0) == 1;
}

TEST(Workers, each_has_one_turn_in_a_round) {
  Workers workers;
  Worker& one = workers.first();
  Worker& other = workers.add(1);
  EXPECT_FALSE(one.events_only);
  EXPECT_TRUE(other.events_only);
  const auto turn_of = [&](Worker& worker) {
    workers.act_as(worker);
    return workers.begin_turn();
  };
  EXPECT_EQ(turn_of(one), 1U);
  EXPECT_EQ(turn_of(other), 1U);
  EXPECT_EQ(turn_of(other), 2U);
  EXPECT_EQ(turn_of(one), 2U);
  EXPECT_EQ(turn_of(one), 3U);
  workers.end_round(other);
  EXPECT_EQ(turn_of(other), 4U) << "for those that no event catches";
}

TEST(Workers, those_on_a_cpu_are_woken_but_for_the_one_whose_turn_it_is) {
  Workers workers;
  workers.first().cpu = 3;
  Worker& here = workers.add(3);
  Worker& elsewhere = workers.add(4);
  workers.wake_at(3);
  EXPECT_TRUE(is_woken(here));
  EXPECT_FALSE(is_woken(workers.first()));
  EXPECT_FALSE(is_woken(elsewhere));
  workers.wake_all();
  EXPECT_TRUE(is_woken(workers.first()) && is_woken(elsewhere));
}

TEST(Workers, the_one_whose_turn_it_is_goes_where_it_is_sent) {
  std::thread([] {
    Workers workers;
    const auto cpus = workers.common_cpus(::getpid());
    ASSERT_FALSE(cpus.empty());
    EXPECT_TRUE(workers.follow(cpus.back()));
    EXPECT_EQ(::sched_getcpu(), cpus.back());
    EXPECT_EQ(workers.first().cpu, cpus.back());
    EXPECT_EQ(workers.migrations(), 1U);
    EXPECT_FALSE(workers.follow(CPU_SETSIZE - 1)) << "no machine has so many";
    EXPECT_FALSE(workers.follow(-1));
    EXPECT_EQ(workers.first().cpu, cpus.back());
  }).join();
}

TEST(Workers, a_worker_sent_to_a_thread_wakes_up_there_a_little_later) {
  std::thread([] {
    Workers workers;
    const int cpu = workers.common_cpus(::getpid()).back();
    const Nanoseconds begin = clock_now();
    EXPECT_TRUE(workers.wake_up_on(cpu, kSecond));
    EXPECT_GE(clock_now() - begin, 50'000);
    EXPECT_EQ(::sched_getcpu(), cpu);
    EXPECT_FALSE(workers.wake_up_on(-1, kSecond));
    // A look alone is in no series that could be one-sided.
    EXPECT_TRUE(workers.wake_up_on(cpu, 0));
  }).join();
}

TEST(Workers, no_worker_goes_to_a_cpu_that_is_kept_free) {
  Workers workers(Workers().common_cpus(::getpid()));
  EXPECT_TRUE(workers.common_cpus(::getpid()).empty());
  EXPECT_FALSE(workers.follow(::sched_getcpu()));
  EXPECT_EQ(workers.migrations(), 0U);
}

TEST(Workers, one_that_waits_for_no_thread_is_sent_to_a_free_cpu) {
  std::promise<pid_t> started;
  std::promise<void> end;
  std::thread idle([&] {
    started.set_value(::gettid());
    end.get_future().wait();
  });
  Workers workers;
  const int cpu = workers.common_cpus(::getpid()).front();
  Worker& busy = workers.add(-1);
  busy.tid = ::gettid();
  busy.wanted.resize(2);  // its wake-up, and an event
  Worker& free = workers.add(-1);
  free.tid = started.get_future().get();
  workers.send_one_to(cpu);
  EXPECT_EQ(free.cpu, cpu);
  EXPECT_TRUE(is_woken(free)) << "there is something else to wait for";
  EXPECT_EQ(busy.cpu, -1);
  EXPECT_EQ(workers.first().cpu, -1);
  workers.send_one_to(cpu);
  EXPECT_EQ(workers.migrations(), 1U) << "somebody is there";
  end.set_value();
  idle.join();
}

}  // namespace
}  // namespace phlox::sampler
