#include "phlox/process/control_group.h"

#include <gtest/gtest.h>

namespace phlox::process {
namespace {

using Folders = std::vector<std::string>;

TEST(ControlGroup, memberships_of_both_versions) {
  const auto paths =
      parse_memberships("9:name=systemd:/\n4:memory:/a:b/c\n2:cpu,cpuacct:/work\n0::/unified\n");
  EXPECT_EQ(paths.at("cpu"), "/work");
  EXPECT_EQ(paths.at("cpuacct"), "/work");
  EXPECT_EQ(paths.at("memory"), "/a:b/c");
  EXPECT_EQ(paths.at(""), "/unified");
  EXPECT_TRUE(parse_memberships("nonsense\n1:\n").empty());
}

TEST(ControlGroup, mounts_are_found_among_others) {
  const auto mounts = parse_group_mounts(
      "22 1 0:21 / /proc rw,nosuid shared:5 - proc proc rw\n"
      "30 24 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
      "31 24 0:27 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"
      "32 24 0:27 / - broken\n");
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_EQ(mounts[0].folder, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(mounts[0].controllers, (Folders{"rw", "cpu", "cpuacct"}));
  EXPECT_EQ(mounts[1].root, "/docker/abc");
  EXPECT_TRUE(mounts[1].controllers.empty());
}

TEST(ControlGroup, a_quota_may_lie_on_any_group_on_the_way_up) {
  const GroupMount whole{{}, "/", "/sys/fs/cgroup"};
  EXPECT_EQ(folders_of(whole, "/a/b"), (Folders{"/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"}));
  EXPECT_EQ(folders_of(whole, "/"), Folders{"/sys/fs/cgroup"});
}

TEST(ControlGroup, a_container_sees_its_own_group_as_the_root) {
  const GroupMount own{{}, "/docker/abc", "/sys/fs/cgroup"};
  EXPECT_EQ(folders_of(own, "/docker/abc"), Folders{"/sys/fs/cgroup"});
  EXPECT_EQ(folders_of(own, "/docker/abc/sub"), (Folders{"/sys/fs/cgroup/sub", "/sys/fs/cgroup"}));
  EXPECT_EQ(folders_of(own, "/docker/abcd"), Folders{});
  EXPECT_EQ(folders_of(own, "/elsewhere"), Folders{});
  EXPECT_EQ(folders_of({{}, "/", "/sys/fs/cgroup"}, "/../other"), Folders{});
}

TEST(ControlGroup, throttling_of_both_versions) {
  const Throttling first = parse_throttling("nr_periods 40\nnr_throttled 38\nthrottled_time 3100000000\n");
  EXPECT_EQ(first.periods, 40U);
  EXPECT_EQ(first.throttled, 38U);
  EXPECT_EQ(first.time_ns, 3'100'000'000U);
  const Throttling second = parse_throttling(
      "usage_usec 12\nuser_usec 10\nsystem_usec 2\nnr_periods 4\nnr_throttled 2\nthrottled_usec 5000\n");
  EXPECT_EQ(second.throttled, 2U);
  EXPECT_EQ(second.time_ns, 5'000'000U);
  EXPECT_EQ(parse_throttling("nonsense\n\nnr_periods x\n").periods, 0U);
}

TEST(ControlGroup, quotas_of_version_2) {
  EXPECT_DOUBLE_EQ(parse_cpu_max("50000 100000\n").value_or(0), 0.5);
  EXPECT_DOUBLE_EQ(parse_cpu_max("250000 100000").value_or(0), 2.5);
  EXPECT_FALSE(parse_cpu_max("max 100000\n"));
  EXPECT_FALSE(parse_cpu_max("50000 0"));
  EXPECT_FALSE(parse_cpu_max(""));
}

}  // namespace
}  // namespace phlox::process
