// The scheduling class of the sampler thread, and the rules of a real-time thread (docs/decisions/0001).
// Touches only the calling thread, and the process's limit on real-time CPU.
#pragma once

#include <string_view>

namespace phlox::sampler {

enum class SchedulingClass {
  real_time,    // SCHED_FIFO 1, reset on fork
  short_slice,  // ordinary class, slice of 0.1 ms: gets the CPU before the running thread (Linux 6.12+)
  ordinary,     // ordinary class, nothing special granted
};

// Takes the best class the kernel grants to the calling thread, and a timer slack of 1 ns.
SchedulingClass take_best_class(bool allow_real_time = true);

std::string_view describe(SchedulingClass scheduling);

}  // namespace phlox::sampler
