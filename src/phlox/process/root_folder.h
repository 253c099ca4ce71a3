// A target's own root folder, and files below it.
#pragma once

#include <sys/types.h>

#include <string>

#include "phlox/base/descriptor.h"

namespace phlox::process {

// The target's root folder, which outlives it; none if it cannot be opened.
Descriptor open_root(pid_t pid);

// The path of an open folder, as we see it.
std::string path_of(const Descriptor& folder);

// For reading, as openat2(2) with these additional flags; no link of the target's leads out of the root.
Descriptor open_beneath(const Descriptor& root, const std::string& path, int flags);

// The same, only for regular files (base/regular_file.h).
Descriptor open_regular_beneath(const Descriptor& root, const std::string& path, int flags = 0);

}  // namespace phlox::process
