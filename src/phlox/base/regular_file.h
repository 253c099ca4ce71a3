// A file to read whose path somebody else wrote: opening a device or a pipe does something, whoever's folder
// it lies in, so what is there is looked at before it is opened.
#pragma once

#include <string>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_user.h"

namespace phlox {

// For reading; none when there is no regular file at the end of the path, or none that we, or `user`, may
// read.
Descriptor open_regular(const std::string& path, const std::optional<FileUser>& user = {});

// What was opened with O_PATH, opened for reading; none of what is no regular file.
Descriptor open_if_regular(const Descriptor& found);

}  // namespace phlox
