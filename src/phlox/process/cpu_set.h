// The CPUs on which a thread may run (sched_getaffinity, sched_setaffinity). glibc's cpu_set_t ends at 1,024
// of them; CONFIG_NR_CPUS goes to 8,192 (arch/x86/Kconfig).
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <vector>

namespace phlox::process {

constexpr int kMostCpus = 8192;

class CpuSet {
 public:
  static CpuSet of_one(int cpu);                    // 0 <= cpu < kMostCpus
  static CpuSet of_all();                           // the kernel ignores those that do not exist
  static std::optional<CpuSet> read(pid_t thread);  // 0: the caller; nothing: it does not exist

  bool has(int cpu) const;
  int count() const;
  std::vector<int> list() const;  // ascending
  int move(pid_t thread) const;   // 0 or errno

 private:
  std::array<cpu_set_t, kMostCpus / CPU_SETSIZE> words_{};
};

}  // namespace phlox::process
