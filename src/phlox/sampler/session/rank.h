// The rank of a process in a distributed job, by the variables that its launcher set: torchrun, mpirun, srun.
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace phlox::sampler {

// "RANK 3, LOCAL_RANK 1" from the bytes of /proc/PID/environ; empty: none of these is set. No other variable
// is read.
std::string rank_words(std::string_view environment);

}  // namespace phlox::sampler
