// What tells processes of one command line apart: the name that a pool gave its worker, the rank of a job.
// The recorder says it in meta, with the row of the process behind the key; where a recording is shown it
// stands behind the command line: "python3 train.py · ForkPoolWorker-1". Pure.
#pragma once

#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::profile {

inline constexpr std::string_view kProcessName = "process_name.";
inline constexpr std::string_view kProcessRank = "process_rank.";  // "RANK 3, LOCAL_RANK 1"
inline constexpr std::string_view kNameDivider = " · ";

// Once, where a recording is shown.
void show_process_names(Profile& profile);

}  // namespace phlox::profile
