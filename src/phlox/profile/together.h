// Several recordings as one: for `report a b`, and the processes of one dump. Pure.
#pragma once

#include "phlox/profile/profile.h"

namespace phlox::profile {

// Appends the rows of `other` to those of `all`, with new ids. Recordings of one host that overlap in time
// keep their times; otherwise `other` follows the end of `all`, without a gap. Meta about the host's CPUs is
// added up if the recordings do not overlap, and is not known if they do. Returns by how much the ids of
// threads grew. Call show_process_names() and show_forks() before: of the meta that refers to rows by id only
// kForkedFrom is copied.
uint32_t add_recording(Profile& all, const Profile& other);

}  // namespace phlox::profile
