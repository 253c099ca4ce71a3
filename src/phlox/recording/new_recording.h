// A recording of nothing, and how one in memory gets a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "phlox/base/file_user.h"
#include "phlox/base/result.h"
#include "phlox/recording/database.h"

namespace phlox::recording {

// To whom a recording belongs; it is written with the rights of that user (base/place.h).
using Owner = FileUser;

// Of nothing, in memory. `path`: for messages.
Result<Database> new_recording(const std::string& path);
// Puts what is in memory into a file, in place of the one that was there. Complete from the first moment, and
// nobody else's to read. No descriptor of it is open when it returns: closing one drops what SQLite has
// locked since, and whoever looked at the growing recording would take its log away.
Result<void> put_recording(sqlite3* in_memory, const std::string& path, const std::optional<Owner>& owner);

// ErrorKind::output, with advice that fits. `error`: errno.
tl::unexpected<Error> cannot_write(const std::string& path, int error);
tl::unexpected<Error> cannot_write(const std::string& path, std::string_view why);

}  // namespace phlox::recording
