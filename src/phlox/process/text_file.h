// A small file of /proc or /sys as text, complete. Sets errno if it cannot be read.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "phlox/base/descriptor.h"

namespace phlox::process {

std::optional<std::string> read_text(const std::string& path);
// A regular file of up to this many bytes, complete; none if it is of another kind, longer, or cannot be
// read.
std::optional<std::string> read_regular(const Descriptor& file, size_t most);

}  // namespace phlox::process
