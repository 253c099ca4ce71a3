// The labels of markers, which replace frames in every tree. For code that builds a tree.
#pragma once

#include <string_view>

#include "phlox/profile/frame_labels.h"
#include "phlox/profile/profile.h"

namespace phlox::profile {

// The frame of the time that a process used before its first sample was possible: anything may have run.
inline constexpr std::string_view kBeforeItsPython = "(before its Python was up)";

Label marker(std::string_view name);  // "all"; a thread's, at the root of its stacks

Label rejected_label();       // of rejected samples
Label no_frames_label();      // of samples without a stack
Label unknown_frame_label();  // of a frame that does not exist

// Whether a marker replaces the stack: it was not read.
bool is_marker(const Profile& profile, StackId stack);

}  // namespace phlox::profile
