// An empty recording, and how one in memory gets a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "phlox/base/file_user.h"
#include "phlox/base/result.h"
#include "phlox/recording/database.h"

namespace phlox::recording {

// The owner of a recording; it is written with the rights of that user (base/place.h).
using Owner = FileUser;

// An empty one, in memory. `path`: for messages.
Result<Database> new_recording(const std::string& path);
// Writes the recording in memory to a file, in place of the old one. It is complete from the first moment,
// and only its owner may read it. No descriptor of it is open when it returns: closing one drops SQLite's
// locks, and a reader of the growing recording would then take its log away.
Result<void> put_recording(sqlite3* in_memory, const std::string& path, const std::optional<Owner>& owner);

// ErrorKind::output, with advice that fits. `error`: errno.
tl::unexpected<Error> cannot_write(const std::string& path, int error);
tl::unexpected<Error> cannot_write(const std::string& path, std::string_view why);

}  // namespace phlox::recording
