#include "phlox/importers/python_frames.h"

#include "phlox/base/text.h"

namespace phlox::importers {

std::optional<profile::Frame> python_frame(std::string_view name) {
  if (!name.starts_with(kPythonPrefix)) return std::nullopt;
  name.remove_prefix(kPythonPrefix.size());
  const size_t colon = name.find(':');
  if (colon == 0 || colon == std::string_view::npos) return std::nullopt;
  profile::Frame frame;
  frame.qualified_name = name.substr(0, colon);
  frame.file = name.substr(colon + 1);
  const size_t dot = frame.qualified_name.rfind('.');
  frame.function = dot == std::string::npos ? frame.qualified_name : frame.qualified_name.substr(dot + 1);
  return frame;
}

bool is_injected(std::string_view path) {
  const std::string_view name = base_name(path);
  return name.starts_with("jitted-") && name.ends_with(".so");
}

}  // namespace phlox::importers
