// The control groups of a process and what they leave it: how much CPU, which CPUs, whether real time. Both
// versions (Documentation/admin-guide/cgroup-v1, cgroup-v2.rst). Parsers are pure; only read_ opens files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phlox::target {

// Of /proc/PID/cgroup (kernel/cgroup/cgroup.c: proc_cgroup_show): the path by controller; "" is version 2.
std::map<std::string, std::string> parse_memberships(std::string_view text);

// A mounted hierarchy, out of /proc/PID/mountinfo (Documentation/filesystems/proc.rst, 3.5).
struct GroupMount {
  std::vector<std::string> controllers;  // empty: version 2
  std::string root;                      // which group is mounted
  std::string folder;
};
std::vector<GroupMount> parse_group_mounts(std::string_view mountinfo);

// Where a group's files lie, and those of its parents, innermost first; empty: not mounted here.
std::vector<std::string> folders_of(const GroupMount& mount, const std::string& path);

// CPUs' worth of time: "50000 100000" of cpu.max; none: no limit.
std::optional<double> parse_cpu_max(std::string_view text);

// What a quota has held back, since the group was made: of cpu.stat, of both versions.
struct Throttling {
  uint64_t periods = 0, throttled = 0;  // nr_periods, nr_throttled
  uint64_t time_ns = 0;                 // of its CPUs, added up, while somebody would have run
};
Throttling parse_throttling(std::string_view text);

// The least quota on the way up.
struct CpuQuota {
  std::string path;    // of the group of the CPU controller that a process is in, as we see it
  std::string folder;  // of the group that has the quota
  double cpus = 0;
  Throttling read_throttling() const;
};
// None: there is no limit, or it does not show.
std::optional<CpuQuota> find_cpu_quota(pid_t pid);

struct ControlGroups {
  std::string path;                     // of its CPU controller, as we see it
  std::optional<double> quota;          // CPUs' worth of time, the least on the way up; none: no limit
  uint64_t periods = 0, throttled = 0;  // of the group with that quota
  std::vector<int> cpus;                // its cpuset; empty: not to be seen
  std::optional<int64_t> real_time_us;  // cpu.rt_runtime_us, version 1 with CONFIG_RT_GROUP_SCHED
};
ControlGroups read_control_groups(pid_t pid);

}  // namespace phlox::target
