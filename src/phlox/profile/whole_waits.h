// A long wait is several samples, the last of which knows who ended it. Pure.
#pragma once

#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// Blocked, but not for the GIL: for that there is gil_holders.h.
bool is_ended_wait(const Sample& sample);

// By sample: who ended the wait that it is a part of. Empty: the recording knows it of none.
std::vector<WakeId> wakes_of_whole_waits(const Profile& profile);

// Whether waits have the length and the moment that the scheduler gave them. Else threads were looked at from
// time to time, and of a wait between two looks nothing is known.
bool waits_are_exact(const Profile& profile);

}  // namespace phlox::profile
