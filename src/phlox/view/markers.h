// The labels of markers, which replace frames in every tree. For code that builds a tree.
#pragma once

#include <string_view>

#include "phlox/profile/profile.h"
#include "phlox/view/frame_labels.h"

namespace phlox::view {

Label marker(std::string_view name);  // "all"; a thread's, at the root of its stacks

Label rejected_label();       // of rejected samples
Label no_frames_label();      // of samples without a stack
Label unknown_frame_label();  // of a frame that does not exist

// Whether a marker is in the place of Python frames that were not read. Native frames and the root of a stack
// have markers, too, which hide no Python frames.
bool hides_python(const profile::Frame& frame);
// Whether a marker is in the place of the innermost Python frames, below native frames or not.
bool is_not_read(const profile::Profile& profile, profile::StackId stack);

}  // namespace phlox::view
