// Marks the file that a recorder is writing or will replace, for other processes: a lock on one byte of it,
// which ends with the recorder.
#pragma once

#include <sys/types.h>

#include <optional>

#include "phlox/base/descriptor.h"
#include "phlox/base/place.h"

namespace phlox::recording {

// The file is marked until this is closed. A file system without such locks leaves it unmarked.
Descriptor mark_as_growing(const Place& place);
// The file stays as it is until this recorder has something to put in its place.
Descriptor mark_as_replaced(const Place& place);
// Whether a recorder writes the file. `file`: of a recording, open.
bool is_marked(const Descriptor& file);
// Whether a recorder writes the file, or will replace it.
bool has_recorder(const Place& place);

// While this is open, no other recorder makes and marks a file in the folder. If another process holds that
// lock for a second, phlox stops waiting: anyone may lock a shared folder, and must not block a recorder that
// way.
Descriptor lock_folder(const Place& place);

// The processes that have the recording open with SQLite, in write-ahead mode.
std::optional<pid_t> user_of(const Place& place);

}  // namespace phlox::recording
