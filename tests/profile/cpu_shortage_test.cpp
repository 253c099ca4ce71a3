#include "phlox/profile/cpu_shortage.h"

#include <gtest/gtest.h>

namespace phlox::profile {
namespace {

TEST(CpuUse, comes_back_as_it_was_put) {
  Profile profile;
  EXPECT_FALSE(cpu_use(profile).is_known());
  put_cpu_use(profile, {{{"/a", 0.5, 40, 38, 3'100'000'000}, {"/b", 2, 40, 0, 0}}, 5, 6, 7, 0, 3});
  const CpuUse use = cpu_use(profile);
  EXPECT_TRUE(use.is_known());
  EXPECT_EQ(use.busy, 5);
  EXPECT_EQ(use.idle, 6);
  EXPECT_EQ(use.stolen, 7);
  EXPECT_EQ(use.allowed, 3);
  ASSERT_EQ(use.groups.size(), 2U);
  EXPECT_EQ(use.groups[0].path, "/a");
  EXPECT_DOUBLE_EQ(use.groups[0].quota, 0.5);
  EXPECT_EQ(use.groups[0].throttled, 38);
  EXPECT_EQ(use.groups[0].held_back, 3'100'000'000);
}

TEST(CpuUse, of_a_file_that_lies_is_nothing) {
  Profile profile;
  profile.emit_meta("host_busy_ns", "-5");
  profile.emit_meta("host_idle_ns", "99999999999999999999");
  profile.emit_meta("cpu_quota.1", "nan");
  EXPECT_FALSE(cpu_use(profile).is_known());
  EXPECT_TRUE(cpu_use(profile).groups.empty());
}

}  // namespace
}  // namespace phlox::profile
