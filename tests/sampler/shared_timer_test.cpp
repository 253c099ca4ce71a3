#include "phlox/sampler/session/shared_timer.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace phlox::sampler {
namespace {

constexpr double kRate = 500;
constexpr Nanoseconds kInterval = static_cast<Nanoseconds>(1e9 / kRate);

int first_cpu() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  EXPECT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mine)) return cpu;
  }
  return -1;
}

void stay_on(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
}

TEST(SharedTimer, a_single_thread_wakes_once_an_interval_on_average) {
  const int cpu = first_cpu();
  SharedTimer timer(kRate, {});
  std::thread thread([&] {
    stay_on(cpu);
    SharedTimer::Slot slot(timer);
    const Nanoseconds since = clock_now();
    uint64_t moments = 0;
    for (int i = 0; i < 100; ++i) moments += 1 + slot.wait(cpu).missed;
    // A machine with much to do wakes it late, which it says.
    EXPECT_NEAR(static_cast<double>(clock_now() - since), static_cast<double>(moments * kInterval),
                0.2 * static_cast<double>(moments * kInterval));
  });
  thread.join();
}

TEST(SharedTimer, those_on_one_cpu_have_their_moments_together) {
  constexpr size_t kThreads = 3, kMoments = 60;
  const int cpu = first_cpu();
  std::atomic<uint64_t> tasks{0};
  SharedTimer timer(kRate, [&](Nanoseconds) { ++tasks; });
  std::atomic<size_t> ready{0};
  std::vector<uint64_t> moments(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      stay_on(cpu);
      SharedTimer::Slot slot(timer);
      for (++ready; ready < kThreads;) ::sched_yield();
      for (size_t moment = 0; moment < kMoments; ++moment) moments[i] += 1 + slot.wait(cpu).missed;
    });
  }
  for (auto& thread : threads) thread.join();
  const uint64_t most = *std::max_element(moments.begin(), moments.end());
  EXPECT_GE(most, kMoments);
  // One for each moment, whichever thread wakes first; some before the others had joined.
  EXPECT_LE(tasks, most + kMoments / 2);
}

TEST(SharedTimer, a_thread_that_stays_is_woken_when_others_have_left) {
  const int cpu = first_cpu();
  SharedTimer timer(kRate, {});
  std::atomic<bool> left{false};
  std::thread leaves([&] {
    stay_on(cpu);
    SharedTimer::Slot slot(timer);
    for (int i = 0; i < 10; ++i) slot.wait(cpu);
    slot.leave();
    left = true;
  });
  std::thread stays([&] {
    stay_on(cpu);
    SharedTimer::Slot slot(timer);
    while (!left) slot.wait(cpu);
    for (int i = 0; i < 10; ++i) slot.wait(cpu);
  });
  leaves.join();
  stays.join();
}

TEST(SharedTimer, more_threads_than_slots_use_another_place) {
  const int cpu = first_cpu();
  std::atomic<uint64_t> tasks{0};
  SharedTimer timer(kRate, [&](Nanoseconds) { ++tasks; });
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 9; ++i) {
    threads.emplace_back([&] {
      stay_on(cpu);
      SharedTimer::Slot slot(timer);
      for (int moment = 0; moment < 20; ++moment) {
        const auto woken = slot.wait(cpu);
        EXPECT_LE(woken.at, clock_now());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GE(tasks, 20U);
}

}  // namespace
}  // namespace phlox::sampler
