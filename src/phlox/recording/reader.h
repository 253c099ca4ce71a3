// Reads a recording into memory. The file may come from anybody: it is opened read-only with what SQLite
// would let a file do to us switched off, and every number is checked before it becomes an id or an enum.
// Never writes, never crashes.
#pragma once

#include <string>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"

namespace phlox::recording {

// A recording that was cut off, or is still being written, reads like any other as far as it was committed,
// as long as its
// "-wal" file lies beside it. ErrorKind::input: not a recording, a newer or damaged one; the message says
// which and where.
Result<profile::Profile> read(const std::string& path);

// A recording that holds nothing at all, not even what was recorded, is an error too: it says what may have
// become of its recorder. For whoever shows it.
Result<profile::Profile> read_begun(const std::string& path);

// Whether the file's first bytes are those of a recording, whole or not. What cannot be opened is none.
bool is_recording(const std::string& path);

}  // namespace phlox::recording
