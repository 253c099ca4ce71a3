#include "phlox/sampler/observe/cpu_charge.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace phlox::sampler {
namespace {

constexpr Nanoseconds kMs = 1'000'000, kInterval = 5 * kMs;

// A thread that sleeps and works in turn, sampled by a clock with a random phase.
class Sampled : public testing::Test {
 protected:
  // Runs for so long, in the function that the samples meanwhile belong to.
  void run(Nanoseconds time, Nanoseconds& function) {
    for (; time >= until_sample_; until_sample_ = kInterval) {
      time -= until_sample_;
      used_ += until_sample_;
      add(until_sample_);
      const Nanoseconds charged = charge_.charge(carried_, kInterval);
      carried_ -= charged;
      function += charged;
    }
    until_sample_ -= time;
    used_ += time;
    add(time);
  }
  void sleep(Nanoseconds time) {
    charge_.add(0, true);
    const Nanoseconds into = (time + kInterval - until_sample_) % kInterval;
    until_sample_ = kInterval - into;
  }
  void add(Nanoseconds ran) {
    charge_.add(ran, false);
    carried_ += ran;
  }

  CpuCharge charge_;
  Nanoseconds carried_ = 0, used_ = 0, until_sample_ = kInterval;
  std::mt19937_64 random_{7};
};

TEST_F(Sampled, a_long_function_does_not_get_the_time_of_short_ones_before_it) {
  Nanoseconds handler = 0, server = 0;
  std::uniform_int_distribution<Nanoseconds> pause(20 * kMs, 60 * kMs);
  for (int i = 0; i < 20'000; ++i) {
    run(kMs, server);
    run(20 * kMs, handler);
    run(kMs, server);
    sleep(pause(random_));
  }
  EXPECT_EQ(handler + server + carried_, used_);
  EXPECT_GE(carried_, 0);
  EXPECT_NEAR(double(handler) / 20'000, 20.0 * kMs, 0.1 * kMs) << "with all of it: 20.4 ms";
}

TEST_F(Sampled, functions_that_are_all_short_have_their_shares) {
  Nanoseconds two = 0, one = 0;
  std::uniform_int_distribution<Nanoseconds> pause(3 * kMs, 30 * kMs);
  for (int i = 0; i < 50'000; ++i) {
    run(2 * kMs, two);
    sleep(pause(random_));
    run(kMs, one);
    sleep(pause(random_));
  }
  EXPECT_NEAR(double(two) / double(two + one), 2.0 / 3, 0.01);
}

TEST_F(Sampled, a_thread_that_does_not_sleep_has_all_of_it_at_once) {
  Nanoseconds function = 0;
  run(kSecond, function);
  EXPECT_EQ(carried_, used_ - function);
  EXPECT_LT(carried_, kInterval);
}

TEST_F(Sampled, what_is_kept_does_not_grow_without_samples) {
  Nanoseconds function = 0, nobody = 0;
  for (int i = 0; i < 1000; ++i) {
    add(20 * kMs);  // no sample: the kernel had no time for it
    sleep(kMs);
    run(kInterval, i % 2 == 0 ? function : nobody);
    sleep(kMs);
    EXPECT_LT(carried_, 40 * kInterval);
  }
}

TEST(CpuCharge, nothing_is_kept_if_the_interval_is_not_known) {
  CpuCharge charge;
  charge.add(20 * kMs, true);
  EXPECT_EQ(charge.charge(20 * kMs, 0), 20 * kMs);
}

}  // namespace
}  // namespace phlox::sampler
