// Distinguishes processes of one command line: by the name that a pool gave its worker, and the rank in a
// job. The recorder stores it in meta, with the process's row after the key. Where a recording is shown, it
// follows the command line: "python3 train.py · ForkPoolWorker-1". Pure.
#pragma once

#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::profile {

inline constexpr std::string_view kProcessName = "process_name.";
inline constexpr std::string_view kProcessRank = "process_rank.";  // "RANK 3, LOCAL_RANK 1"
inline constexpr std::string_view kNameDivider = " · ";

// Called once, where a recording is shown.
void show_process_names(Profile& profile);

}  // namespace phlox::profile
