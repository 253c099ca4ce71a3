// A recording of nothing, put where one is to be.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "phlox/base/result.h"

namespace phlox::recording {

struct Owner {
  uid_t user = 0;
  gid_t group = 0;
};

// Complete from the first moment, and nobody else's to read. No descriptor of it is open when it returns:
// closing one drops what SQLite has locked since, and whoever looked at the growing recording would take its
// log away.
Result<void> put_empty_recording(const std::string& path, std::optional<Owner> owner);

// ErrorKind::output, with advice that fits. `error`: errno.
tl::unexpected<Error> cannot_write(const std::string& path, int error);
tl::unexpected<Error> cannot_write(const std::string& path, std::string_view why);

}  // namespace phlox::recording
