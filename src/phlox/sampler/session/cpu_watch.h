// What keeps recorded processes from a CPU, by the kernel's own counts from the recording's start on: quotas
// of their control groups, who uses the CPUs of the host, and on how many of these they may run. Used by the
// recorder's thread; reads small files of /proc and of control groups, a few a second.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/profile/cpu_shortage.h"
#include "phlox/target/control_group.h"

namespace phlox::sampler {

// The first line of /proc/stat (fs/proc/stat.c), in clock ticks.
struct HostTicks {
  uint64_t busy = 0, idle = 0, stolen = 0;
};
std::optional<HostTicks> parse_host_ticks(std::string_view text);

class CpuWatch {
 public:
  CpuWatch();
  // Its control group counts from here on, and on which CPUs it may run.
  void meet(pid_t process);
  profile::CpuUse since_start() const;

 private:
  struct Group {
    target::CpuQuota quota;
    target::Throttling before;
  };
  std::optional<HostTicks> before_;
  std::vector<Group> groups_;
  int64_t allowed_ = 0;
};

}  // namespace phlox::sampler
