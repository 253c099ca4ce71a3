// Why threads that could run had no CPU: CPU time that quotas withheld, and which processes used the host's
// CPUs, during the recording. The recorder stores this in meta (docs/recording.md); recordings of older
// versions lack it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// A control group with a quota that contained recorded processes.
struct CpuGroup {
  std::string path;
  double quota = 0;                    // CPUs' worth of time
  int64_t periods = 0, throttled = 0;  // how many periods, and in how many of them the quota was used up
  Nanoseconds held_back = 0;           // as the kernel counts it (cpu.stat)
};

struct CpuUse {
  std::vector<CpuGroup> groups;
  // Over all CPUs of the host; all 0: not known.
  Nanoseconds busy = 0, idle = 0, stolen = 0;
  // The number of CPUs of the host, and the smallest number of CPUs that a recorded process may use
  // (sched_setaffinity, cpuset); 0: not known.
  int64_t cpus = 0, allowed = 0;

  bool is_known() const { return busy + idle + stolen > 0; }
};

CpuUse cpu_use(const Profile& profile);
// As meta, without `cpus`, which the recorder writes first. The number of a group is its position, from 1.
void put_cpu_use(Sink& sink, const CpuUse& use);

}  // namespace phlox::profile
