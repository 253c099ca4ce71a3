// Reads a recording into memory. The file may come from anyone: it is opened read-only with the dangerous
// features of SQLite switched off, and every number is checked before it becomes an id or an enum. Never
// writes, never crashes.
#pragma once

#include <string>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"

namespace phlox::recording {

// A recording that was interrupted, or is still being written, reads like any other up to its last commit, if
// its "-wal" file is next to it. ErrorKind::input: no recording, or a newer or damaged one; the message says
// which and where.
Result<profile::Profile> read(const std::string& path);

// A recording without any row, not even about its processes, is an error too, which says what may have
// happened to its recorder. For code that shows it.
Result<profile::Profile> read_begun(const std::string& path);

// Whether the file's first bytes are those of a recording, complete or not. False if it cannot be opened.
bool is_recording(const std::string& path);

}  // namespace phlox::recording
