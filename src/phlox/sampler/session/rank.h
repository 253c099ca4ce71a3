// Which process of a distributed job this is, by the variables that its launcher set: torchrun, mpirun, srun.
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace phlox::sampler {

// "RANK 3, LOCAL_RANK 1" of the bytes of /proc/PID/environ; empty: none of these is there. No other variable
// is looked at.
std::string rank_words(std::string_view environment);

}  // namespace phlox::sampler
