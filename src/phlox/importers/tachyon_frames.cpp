#include "phlox/importers/tachyon_frames.h"

#include <charconv>
#include <limits>

namespace phlox::importers {
namespace {

bool is_between_frames(std::string_view file, std::string_view function) {
  return file == "~" || function == "<native>" || function == "<GC>";
}

}  // namespace

profile::Frame tachyon_frame(std::string_view file, std::string_view function, int64_t line) {
  profile::Frame frame;
  frame.qualified_name = function;
  frame.function = function;
  if (is_between_frames(file, function)) {
    frame.kind = profile::FrameKind::marker;
    return frame;
  }
  frame.file = file;
  const size_t dot = function.rfind('.');
  if (dot != std::string_view::npos && dot + 1 < function.size()) frame.function = function.substr(dot + 1);
  if (line > 0 && line <= std::numeric_limits<int32_t>::max()) frame.line = static_cast<int32_t>(line);
  return frame;
}

profile::Frame tachyon_frame_of_text(std::string_view text) {
  const size_t last = text.rfind(':');
  if (last == std::string_view::npos || last == 0) return tachyon_frame("", text, 0);
  int64_t line = 0;
  const auto [end, error] = std::from_chars(text.data() + last + 1, text.data() + text.size(), line);
  if (error != std::errc() || end != text.data() + text.size()) return tachyon_frame("", text, 0);
  const std::string_view place = text.substr(0, last);
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) return tachyon_frame("", text, 0);
  return tachyon_frame(place.substr(0, colon), place.substr(colon + 1), line);
}

}  // namespace phlox::importers
