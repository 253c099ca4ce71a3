// The kinds of a thread's time, for stores in which each is a profile of its own. They overlap: wall is all
// of it, cpu is what the kernel charged, and the others are the parts of wall in which the thread was off the
// CPU, waited for the GIL or waited for a CPU. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "phlox/view/view.h"

namespace phlox::exporters {

inline constexpr std::array<std::string_view, 5> kTimeKinds = {"cpu", "wall", "off_cpu", "gil_wait",
                                                               "cpu_wait"};
using KindTimes = std::array<int64_t, kTimeKinds.size()>;

// In the order of kTimeKinds.
constexpr KindTimes times_of(const profile::Sample& sample, Nanoseconds wall, Nanoseconds cpu) {
  const bool waits_for_gil = sample.gil_state == profile::GilState::waits;
  return {cpu, wall, sample.cpu_state == profile::CpuState::blocked ? wall : 0, waits_for_gil ? wall : 0,
          sample.cpu_state == profile::CpuState::runnable ? wall : 0};
}

}  // namespace phlox::exporters
