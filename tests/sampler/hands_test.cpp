#include "phlox/sampler/hands.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace phlox::sampler {
namespace {

TEST(Baton, one_at_a_time_has_it) {
  Baton baton;
  uint64_t count = 0;
  std::vector<std::thread> hands;
  for (int hand = 0; hand < 4; ++hand) {
    hands.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        while (!baton.take()) std::this_thread::yield();
        ++count;
        baton.give();
      }
    });
  }
  for (auto& hand : hands) hand.join();
  EXPECT_EQ(count, 80'000U);
}

TEST(Baton, nobody_waits_for_it_for_long) {
  Baton baton;
  ASSERT_TRUE(baton.take());
  EXPECT_FALSE(baton.take());
  baton.give();
  EXPECT_TRUE(baton.take());
}

}  // namespace
}  // namespace phlox::sampler
