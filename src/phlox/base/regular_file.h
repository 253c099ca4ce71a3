// Opens a file whose path someone else wrote. Opening a device or a pipe may have effects, in any folder, so
// the kind of the file is checked first.
#pragma once

#include <string>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_user.h"

namespace phlox {

// For reading; none if the path does not lead to a regular file, or if we, or `user`, may not read it.
Descriptor open_regular(const std::string& path, const std::optional<FileUser>& user = {});

// Reopens a file for reading that was opened with O_PATH; none if it is not a regular file.
Descriptor open_if_regular(const Descriptor& found);

}  // namespace phlox
