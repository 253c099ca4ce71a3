// A small file of /proc or /sys as text, whole. Sets errno when it cannot be read.
#pragma once

#include <optional>
#include <string>

namespace phlox::target {

std::optional<std::string> read_text(const std::string& path);

}  // namespace phlox::target
