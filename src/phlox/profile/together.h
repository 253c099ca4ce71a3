// Several recordings as one: what `report a b` adds up, and the processes of one dump. Pure.
#pragma once

#include "phlox/profile/profile.h"

namespace phlox::profile {

// The rows of `other` behind those of `all`, with new ids. Recordings of one host that overlap in time keep
// their times; else `other` is set behind the end of `all`, without a gap. What meta says of the host's CPUs
// is added up where they do not overlap, and is not known where they do. Gives by how much the ids of threads
// grew. Call show_process_names() and show_forks() before: what meta says of rows by their ids is not taken
// along.
uint32_t add_recording(Profile& all, const Profile& other);

}  // namespace phlox::profile
