#include "phlox/sampler/capture/records.h"

#include <gtest/gtest.h>

namespace phlox::sampler {
namespace {

TEST(LookRecord, one_that_proves_rest_stands_for_the_turns_it_was_spared) {
  LookRecord last = look_at(3, 5'000'000, 4'000'000);
  last.cpu = 400'000;
  last.ran = 500'000;
  last.fresh = 7;
  last.cpu_state = profile::CpuState::blocked;
  const LookRecord look = same_look(last, 9'000'000, last.time, 4);
  EXPECT_EQ(look.looks, 4u);
  EXPECT_EQ(look.wall, 4'000'000);
  EXPECT_EQ(look.cpu, 0);
  EXPECT_EQ(look.ran, 0);
  EXPECT_EQ(look.fresh, 0u);
  EXPECT_EQ(look.thread, 3u);
  EXPECT_EQ(look.cpu_state, profile::CpuState::blocked);
}

TEST(LookRecord, time_not_known_to_be_run_or_slept_stays_so) {
  const LookRecord last = look_at(3, 5'000'000, 4'000'000);
  EXPECT_EQ(same_look(last, 6'000'000, last.time, 1).ran, -1);
}

TEST(LookRecord, looks_alike_add_up) {
  LookRecord held = look_at(3, 5'000'000, 4'000'000);
  held.cpu = 100;
  join(held, same_look(held, 9'000'000, held.time, 4));
  EXPECT_EQ(held.looks, 5u);
  EXPECT_EQ(held.wall, 5'000'000);
  EXPECT_EQ(held.time, 9'000'000);
  EXPECT_EQ(held.cpu, 100);
}

}  // namespace
}  // namespace phlox::sampler
