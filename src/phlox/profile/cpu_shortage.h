// Why threads that could run had no CPU: what quotas held back, and who used the CPUs of the host, while it
// was recorded. The recorder says so in meta (docs/recording.md); recordings of older versions say nothing.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// A control group with a quota that recorded processes were in.
struct CpuGroup {
  std::string path;
  double quota = 0;                    // CPUs' worth of time
  int64_t periods = 0, throttled = 0;  // and of these, in how many it was used up
  Nanoseconds held_back = 0;           // as the kernel counts it (cpu.stat)
};

struct CpuUse {
  std::vector<CpuGroup> groups;
  // Of all CPUs of the host; 0, all of them: not known.
  Nanoseconds busy = 0, idle = 0, stolen = 0;
  // How many CPUs the host has, and on how many that recorded process may run that may on the fewest
  // (sched_setaffinity, cpuset); 0: not known.
  int64_t cpus = 0, allowed = 0;

  bool is_known() const { return busy + idle + stolen > 0; }
};

CpuUse cpu_use(const Profile& profile);
// As meta, but for `cpus`, which the recorder says first; the number of a group is its place, from 1.
void put_cpu_use(Sink& sink, const CpuUse& use);

}  // namespace phlox::profile
