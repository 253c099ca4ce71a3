// Whether a recording is of a whole run of a program: phlox started it, and it ended by itself. Two such
// recordings can be compared in seconds; others only in seconds of each second.
#pragma once

#include "phlox/profile/profile.h"

namespace phlox::view {

bool is_whole_run(const profile::Profile& profile);

}  // namespace phlox::view
