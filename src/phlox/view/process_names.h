// Distinguishes processes of one command line: by the name that a pool gave its worker, and the rank in a
// job. The recorder stores it in meta, with the process's row after the key. Where a recording is shown, it
// follows the command line: "python3 train.py · ForkPoolWorker-1". Pure.
#pragma once

#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::view {

inline constexpr std::string_view kNameDivider = " · ";

// Called once, where a recording is shown.
void show_process_names(profile::Profile& profile);

}  // namespace phlox::view
