// A text file that a target names (a source file), opened below the target's own root, or its working
// directory if the name is relative: no link leads out, no device is opened, and no more is read than
// requested.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "phlox/base/file_user.h"

namespace phlox::process {

// Nothing if it does not exist, is no regular file, is longer than `most`, or may not be read: by `user`, if
// one is given.
std::optional<std::string> read_file_of(pid_t pid, const std::string& path, size_t most,
                                        const std::optional<FileUser>& user);

}  // namespace phlox::process
