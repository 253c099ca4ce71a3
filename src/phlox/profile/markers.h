// The labels that stand in place of frames in every tree: made by view.cpp, and by whoever builds a tree of
// its own.
#pragma once

#include "phlox/profile/view.h"

namespace phlox::profile {

Label rejected_label();       // of rejected samples
Label no_frames_label();      // of samples without a stack
Label unknown_frame_label();  // of a frame that is not there

}  // namespace phlox::profile
