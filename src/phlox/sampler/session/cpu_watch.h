// Why recorded processes had no CPU, by the kernel's own counts since the recording's start: quotas of their
// control groups, which programs used the host's CPUs, and how many of these the processes may use. Used by
// the recorder's thread; reads small files of /proc and of control groups, a few a second.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/process/control_group.h"
#include "phlox/profile/cpu_shortage.h"

namespace phlox::sampler {

// The first line of /proc/stat (fs/proc/stat.c), in clock ticks.
struct HostTicks {
  uint64_t busy = 0, idle = 0, stolen = 0;
};
std::optional<HostTicks> parse_host_ticks(std::string_view text);

class CpuWatch {
 public:
  CpuWatch();
  // From here on, its control group counts, and the CPUs that it may use.
  void meet(pid_t process);
  profile::CpuUse since_start() const;

 private:
  struct Group {
    process::CpuQuota quota;
    process::Throttling before;
  };
  std::optional<HostTicks> before_;
  std::vector<Group> groups_;
  int64_t allowed_ = 0;
};

}  // namespace phlox::sampler
