// Python functions among native frames: the names that `python -X perf` gives its trampolines, in a perf map,
// a jitdump, or the files that `perf inject` made of one. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "phlox/profile/model.h"

namespace phlox::importers {

inline constexpr std::string_view kPythonPrefix = "py::";

// From "py::QUALIFIED.NAME:/path/of/file.py". There are no lines; they stay empty.
std::optional<profile::Frame> python_frame(std::string_view name);

// Whether a path belongs to a file that `perf inject --jit` made: "jitted-PID-NUMBER.so".
bool is_injected(std::string_view path);

}  // namespace phlox::importers
