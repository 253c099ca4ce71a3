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

}  // namespace phlox::profile
