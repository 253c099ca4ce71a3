// A text file that a target names (a source file), opened beneath the target's own root, or its working
// directory when the name is relative: no link leads out, no device is opened, no more is read than asked
// for.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "phlox/base/file_user.h"

namespace phlox::target {

// Nothing when it is not there, is no regular file, is longer than `most`, or may not be read: by `user`,
// where one is given.
std::optional<std::string> read_file_of(pid_t pid, const std::string& path, size_t most,
                                        const std::optional<FileUser>& user);

}  // namespace phlox::target
