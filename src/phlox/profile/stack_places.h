// Where the time of a stack is, as people ask for it: in the innermost Python function and its line, and in
// the native code beneath that. Pure.
#pragma once

#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

struct StackPlace {
  StackId stack;  // that ends in `frame`
  FrameId frame;  // the innermost Python frame; of a stack without one the innermost of all
  // The innermost native frame beneath `frame`; none: there is none, or the stack has no Python frame.
  FrameId native;
  // What runs there is a library or an extension. Else it is Python, whose own C counts as Python, or the
  // kernel on behalf of it. The C library is whose it is that calls it.
  bool foreign = false;
};

// By the id of a stack, of a profile that show_native_frames() has prepared.
std::vector<StackPlace> stack_places(const Profile& profile);

}  // namespace phlox::profile
