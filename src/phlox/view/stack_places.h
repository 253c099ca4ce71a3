// The place of a stack's time, as people ask for it: the innermost Python function and its line, and the
// native code that it calls. Pure.
#pragma once

#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::view {

struct StackPlace {
  profile::StackId stack;  // the stack that ends in `frame`
  // The innermost Python frame, or a marker in the place of Python frames that were not read: their time is
  // not their caller's. In a stack without either, and in native code beneath such a marker, the innermost
  // frame.
  profile::FrameId frame;
  // The innermost native frame below `frame`; none: there is none, or the stack has no Python frame.
  profile::FrameId native;
  // A library or an extension runs there. Otherwise it is Python, whose own C counts as Python, or the kernel
  // on its behalf. The C library belongs to its caller.
  bool foreign = false;
};

// By the id of a stack, of a profile that show_native_frames() has prepared.
std::vector<StackPlace> stack_places(const profile::Profile& profile);

}  // namespace phlox::view
