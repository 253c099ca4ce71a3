// The scheduling class of the sampler thread, and the rules of a real-time thread (docs/decisions/0001).
// Touches only the calling thread, and the process's limit on real-time CPU.
#pragma once

#include "phlox/sampler/observe/mode.h"

namespace phlox::sampler {

// Takes the best class the kernel grants to the calling thread, and a timer slack of 1 ns.
SchedulingClass take_best_class(bool allow_real_time = true);

}  // namespace phlox::sampler
