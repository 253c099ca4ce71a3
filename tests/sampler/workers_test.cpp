#include "phlox/sampler/workers.h"

#include <gtest/gtest.h>

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

TEST(TurnLock, nobody_waits_for_it_for_long) {
  TurnLock turn_lock;
  ASSERT_TRUE(turn_lock.try_lock());
  EXPECT_FALSE(turn_lock.try_lock());
  turn_lock.unlock();
  EXPECT_TRUE(turn_lock.try_lock());
}

}  // namespace
}  // namespace phlox::sampler
