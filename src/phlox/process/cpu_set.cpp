#include "phlox/process/cpu_set.h"

#include <cerrno>
#include <cstring>

namespace phlox::process {

CpuSet CpuSet::of_one(int cpu) {
  CpuSet set;
  CPU_SET_S(static_cast<size_t>(cpu), sizeof set.words_, set.words_.data());
  return set;
}

CpuSet CpuSet::of_all() {
  CpuSet set;
  std::memset(set.words_.data(), 0xff, sizeof set.words_);
  return set;
}

std::optional<CpuSet> CpuSet::read(pid_t thread) {
  CpuSet set;
  if (::sched_getaffinity(thread, sizeof set.words_, set.words_.data()) != 0) return std::nullopt;
  return set;
}

bool CpuSet::has(int cpu) const {
  return CPU_ISSET_S(static_cast<size_t>(cpu), sizeof words_, words_.data());
}

int CpuSet::count() const {
  return CPU_COUNT_S(sizeof words_, words_.data());
}

std::vector<int> CpuSet::list() const {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (has(cpu)) cpus.push_back(cpu);
  }
  return cpus;
}

int CpuSet::move(pid_t thread) const {
  return ::sched_setaffinity(thread, sizeof words_, words_.data()) == 0 ? 0 : errno;
}

}  // namespace phlox::process
