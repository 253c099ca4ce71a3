#include "phlox/profile/markers.h"

#include <string>

namespace phlox::profile {

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

bool is_marker(const Profile& profile, StackId stack) {
  if (!stack || stack.value > profile.stacks().size()) return false;
  const FrameId frame = profile.stack(stack).frame;
  return frame && frame.value <= profile.frames().size() && profile.frame(frame).kind == FrameKind::marker;
}

}  // namespace phlox::profile
