#include "phlox/selection/selection.h"

#include <gtest/gtest.h>

namespace phlox::selection {
namespace {

constexpr const char* kUnified =
    "24 1 0:22 / /proc rw - proc proc rw\n"
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
// Within a container, whose root of the hierarchy is a group of the host.
constexpr const char* kWithin =
    "30 24 0:26 /docker/0123 /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup rw\n";
// Version 1 and version 2 side by side, as systemd mounted them for years.
constexpr const char* kHybrid =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(GroupPath, a_folder_of_the_hierarchy_and_a_path_in_it_are_the_same) {
  EXPECT_EQ(group_path("/system.slice/web.service", kUnified), "/system.slice/web.service");
  EXPECT_EQ(group_path("/sys/fs/cgroup/system.slice/web.service/", kUnified), "/system.slice/web.service");
  EXPECT_EQ(group_path("system.slice", kUnified), "/system.slice");
  EXPECT_EQ(group_path("/sys/fs/cgroup", kUnified), "/");
  EXPECT_EQ(group_path("/sys/fs/cgroups", kUnified), "/sys/fs/cgroups");
}

TEST(GroupPath, a_mount_of_a_part_of_the_hierarchy_has_that_part_in_front) {
  EXPECT_EQ(group_path("/sys/fs/cgroup/app", kWithin), "/docker/0123/app");
}

TEST(GroupPath, each_hierarchy_of_version_1_is_left_out_and_none_that_only_begins_alike) {
  EXPECT_EQ(group_path("/sys/fs/cgroup/cpu/work", kHybrid), "/work");
  EXPECT_EQ(group_path("/sys/fs/cgroup/cpuset/work", kHybrid), "/work");
  EXPECT_EQ(group_path("/sys/fs/cgroup/unified/system.slice/", kHybrid), "/system.slice");
}

// The root of a control group namespace is "/", and what lies outside of it begins with "..".
TEST(GroupPath, what_proc_says_of_a_group_outside_of_ours_is_kept) {
  EXPECT_EQ(group_path("/../web.service", kUnified), "/../web.service");
  EXPECT_EQ(group_path("/", ""), "/");
}

TEST(InGroup, one_of_the_hierarchies_of_version_1_is_enough) {
  const std::string memberships = "4:memory:/jobs/7\n1:cpu,cpuacct:/\n0::/\n";
  EXPECT_TRUE(is_in_group(memberships, "/jobs"));
  EXPECT_FALSE(is_in_group(memberships, "/job"));
}

TEST(InGroup, itself_and_all_below_but_not_a_longer_name) {
  const std::string memberships = "0::/system.slice/web.service\n";
  EXPECT_TRUE(is_in_group(memberships, "/system.slice/web.service"));
  EXPECT_TRUE(is_in_group(memberships, "/system.slice"));
  EXPECT_TRUE(is_in_group(memberships, "/"));
  EXPECT_FALSE(is_in_group(memberships, "/system.slice/web"));
  EXPECT_FALSE(is_in_group(memberships, "/system.slice/web.service/worker"));
  EXPECT_FALSE(is_in_group("", "/"));
}

}  // namespace
}  // namespace phlox::selection
