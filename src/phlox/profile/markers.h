// The labels that stand in place of frames in every tree: for whoever builds one.
#pragma once

#include <string_view>

#include "phlox/profile/frame_labels.h"
#include "phlox/profile/profile.h"

namespace phlox::profile {

// The frame of the time that a process had used before its first sample could be taken: anything may have
// run.
inline constexpr std::string_view kBeforeItsPython = "(before its Python was up)";

Label marker(std::string_view name);  // "all"; a thread's, at the root of its stacks

Label rejected_label();       // of rejected samples
Label no_frames_label();      // of samples without a stack
Label unknown_frame_label();  // of a frame that is not there

// Whether a marker is in place of the stack: it was not read.
bool is_marker(const Profile& profile, StackId stack);

}  // namespace phlox::profile
