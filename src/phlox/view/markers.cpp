#include "phlox/view/markers.h"

#include <string>

#include "phlox/profile/recorded_words.h"

namespace phlox::view {

using namespace profile;

Label marker(std::string_view name) {
  return {FrameKind::marker, std::string(name)};
}

Label rejected_label() {
  return marker("(rejected: could not be read)");
}
Label no_frames_label() {
  return marker("(no Python frames)");
}
Label unknown_frame_label() {
  return marker("(unknown frame)");
}

bool hides_python(const Frame& frame) {
  const std::string_view name = frame.function;
  return frame.kind == FrameKind::marker &&
         (name == kWaitNotRead || name == "(a code object that cannot be read)" ||
          name.starts_with("(a function not read") || name.starts_with("(callers unknown: ") ||
          name.ends_with(" frames left out)"));
}

bool is_not_read(const Profile& profile, StackId stack) {
  for (StackId at = stack; at && at.value <= profile.stacks().size();) {
    const Stack& row = profile.stack(at);
    if (!row.frame || row.frame.value > profile.frames().size()) return false;
    const Frame& frame = profile.frame(row.frame);
    if (frame.kind == FrameKind::python) return false;
    if (hides_python(frame)) return true;
    if (at == stack && frame.kind == FrameKind::marker) return frame.function != no_frames_label().name;
    at = row.parent < at ? row.parent : StackId();
  }
  return false;
}

}  // namespace phlox::view
