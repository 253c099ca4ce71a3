// The control groups of a process and their limits: CPU time, CPUs, real time. Both versions
// (Documentation/admin-guide/cgroup-v1, cgroup-v2.rst). Parsers are pure; only read_ opens files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phlox::process {

// From /proc/PID/cgroup (kernel/cgroup/cgroup.c: proc_cgroup_show): the path by controller; "" is version 2.
std::map<std::string, std::string> parse_memberships(std::string_view text);

// A mounted hierarchy, from /proc/PID/mountinfo (Documentation/filesystems/proc.rst, 3.5).
struct GroupMount {
  std::vector<std::string> controllers;  // empty: version 2
  std::string root;                      // the mounted group
  std::string folder;
};
std::vector<GroupMount> parse_group_mounts(std::string_view mountinfo);

// The folders with the files of a group and of its parents, innermost first; empty: not mounted here.
std::vector<std::string> folders_of(const GroupMount& mount, const std::string& path);

// The folders of the groups of a controller that a process is in, innermost first; empty: not visible.
struct GroupFolders {
  bool unified = false;  // version 2
  std::vector<std::string> folders;
};
GroupFolders read_group_folders(pid_t pid, const std::string& controller);

// CPUs' worth of time: "50000 100000" of cpu.max; none: no limit.
std::optional<double> parse_cpu_max(std::string_view text);

// How much a quota has withheld since the group was made: from cpu.stat, of both versions.
struct Throttling {
  uint64_t periods = 0, throttled = 0;  // nr_periods, nr_throttled
  uint64_t time_ns = 0;                 // of its CPUs, added up, while a thread was ready to run
};
Throttling parse_throttling(std::string_view text);

// The smallest quota on the way up.
struct CpuQuota {
  std::string path;    // of the process's group for the CPU controller, as we see it
  std::string folder;  // of the group with the quota
  double cpus = 0;
  Throttling read_throttling() const;
};
// None: there is no limit, or it is not visible.
std::optional<CpuQuota> find_cpu_quota(pid_t pid);

struct ControlGroups {
  std::string path;                     // of its CPU controller, as we see it
  std::optional<double> quota;          // CPUs' worth of time, the smallest on the way up; none: no limit
  uint64_t periods = 0, throttled = 0;  // of the group with that quota
  std::vector<int> cpus;                // its cpuset; empty: not visible
  std::optional<int64_t> real_time_us;  // cpu.rt_runtime_us, version 1 with CONFIG_RT_GROUP_SCHED
};
ControlGroups read_control_groups(pid_t pid);

}  // namespace phlox::process
