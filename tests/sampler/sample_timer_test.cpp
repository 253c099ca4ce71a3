#include "phlox/sampler/capture/sample_timer.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace phlox::sampler {
namespace {

constexpr Nanoseconds kInterval = 500'000;

int first_cpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) return cpu;
  }
  return 0;
}

TEST(SampleTimer, by_the_clock_it_wakes_no_earlier_than_planned) {
  SampleTimer timer(false);
  Schedule schedule(kInterval, 1), same(kInterval, 1);
  Nanoseconds now = clock_now();
  schedule.start(now);
  same.start(now);
  for (int i = 0; i < 50; ++i) {
    const Nanoseconds planned = same.next(now);
    now = timer.wait(schedule, now, -1);
    EXPECT_GE(now, planned);
  }
  EXPECT_EQ(timer.by_clock(), 50U);
  EXPECT_EQ(timer.by_perf(), 0U);
}

// Whether this host gives a CPU-wide event or not: every wait comes back, time goes on, and all waits are
// accounted for.
TEST(SampleTimer, on_one_cpu_it_takes_that_cpus_event_where_it_may) {
  SampleTimer timer;
  Schedule schedule(kInterval, 1);
  const int cpu = first_cpu();
  Nanoseconds now = clock_now();
  const Nanoseconds start = now;
  schedule.start(now);
  constexpr int kWaits = 400;
  for (int i = 0; i < kWaits; ++i) {
    const Nanoseconds woken = timer.wait(schedule, now, cpu);
    EXPECT_GT(woken, now);
    now = woken;
  }
  EXPECT_EQ(timer.by_clock() + timer.by_perf(), static_cast<uint64_t>(kWaits));
  // No faster than the shortest intervals allow: an event that is always ready would spin.
  EXPECT_GT(now - start, kWaits * kInterval / 4);
  EXPECT_GE(timer.by_clock(), 32U);
}

TEST(SampleTimer, on_another_cpu_it_starts_over_by_the_clock) {
  SampleTimer timer;
  Schedule schedule(kInterval, 1);
  Nanoseconds now = clock_now();
  schedule.start(now);
  for (int i = 0; i < 100; ++i) now = timer.wait(schedule, now, first_cpu());
  const uint64_t before = timer.by_clock();
  for (int i = 0; i < 20; ++i) now = timer.wait(schedule, now, -1);
  EXPECT_EQ(timer.by_clock(), before + 20);
}

}  // namespace
}  // namespace phlox::sampler
