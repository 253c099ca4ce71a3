// Whether a recording is of a whole run of a program: from its start, by phlox, to its own end. Of two such
// recordings seconds can be compared; of others only seconds a second. Pure.
#pragma once

#include "phlox/profile/profile.h"

namespace phlox::profile {

bool is_whole_run(const Profile& profile);

}  // namespace phlox::profile
