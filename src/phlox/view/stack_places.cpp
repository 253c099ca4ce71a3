#include "phlox/view/stack_places.h"

#include "phlox/view/markers.h"
#include "phlox/view/native_frames.h"

namespace phlox::view {

using namespace profile;

namespace {

bool is_foreign(const Frame& frame, const StackPlace& outer) {
  if (frame.role == kCLibrary) return !outer.frame || outer.foreign;
  return !is_interpreter(frame);
}

StackPlace place_in(const StackPlace& outer, bool in_python, StackId stack, FrameId id, const Frame& frame) {
  if (frame.kind == FrameKind::python || hides_python(frame)) return {stack, id, {}, false};
  StackPlace place = outer;
  if (!in_python) place.stack = stack, place.frame = id;
  if (frame.kind != FrameKind::native) return place;
  place.foreign = is_foreign(frame, outer);
  if (in_python) place.native = id;
  return place;
}

}  // namespace

std::vector<StackPlace> stack_places(const Profile& profile) {
  const auto& stacks = profile.stacks();
  const auto& frames = profile.frames();
  std::vector<StackPlace> places(stacks.size() + 1);
  for (uint32_t i = 1; i <= stacks.size(); ++i) {
    // Parents come before children; a row that claims otherwise is treated as a root.
    const Stack& stack = stacks[i - 1];
    const StackPlace& outer = places[stack.parent.value < i ? stack.parent.value : 0];
    const bool in_python = outer.frame && frames[outer.frame.value - 1].kind == FrameKind::python;
    if (stack.frame && stack.frame.value <= frames.size()) {
      places[i] = place_in(outer, in_python, StackId(i), stack.frame, frames[stack.frame.value - 1]);
    } else {
      places[i] = outer;
    }
  }
  return places;
}

}  // namespace phlox::view
