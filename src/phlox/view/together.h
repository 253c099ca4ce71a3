// Several recordings as one: for `report a b`, and the processes of one dump. Pure.
#pragma once

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"

namespace phlox::view {

// Appends the rows of `other` to those of `all`, with new ids. Recordings of one host that overlap in time
// keep their times; otherwise `other` follows the end of `all`, without a gap. Meta about the host's CPUs is
// added up if the recordings do not overlap, and is not known if they do. Returns by how much the ids of
// threads grew. Call show_process_names() and show_forks() before: of the meta that refers to rows by id only
// kForkedFrom is copied.
uint32_t add_recording(profile::Profile& all, const profile::Profile& other);

// The same for the tasks of `other`, in `of_other`. Call it before add_recording(all, other).
void add_tasks(profile::TaskRows& rows, const profile::TaskRows& of_other, const profile::Profile& all,
               const profile::Profile& other);

}  // namespace phlox::view
