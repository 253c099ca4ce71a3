// The labels of markers, which replace frames in every tree. For code that builds a tree.
#pragma once

#include <string_view>

#include "phlox/profile/frame_labels.h"
#include "phlox/profile/profile.h"

namespace phlox::profile {

// The frame of a wait whose stack was not read.
inline constexpr std::string_view kWaitNotRead = "(a wait whose stack was not read)";
// The frame of the time that a process used before its first sample was possible: anything may have run.
inline constexpr std::string_view kBeforeItsPython = "(before its Python was up)";

Label marker(std::string_view name);  // "all"; a thread's, at the root of its stacks

Label rejected_label();       // of rejected samples
Label no_frames_label();      // of samples without a stack
Label unknown_frame_label();  // of a frame that does not exist

// Whether a marker is in the place of Python frames that were not read. Native frames and the root of a stack
// have markers, too, which hide no Python frames.
bool hides_python(const Frame& frame);
// Whether a marker is in the place of the innermost Python frames, below native frames or not.
bool is_not_read(const Profile& profile, StackId stack);

}  // namespace phlox::profile
