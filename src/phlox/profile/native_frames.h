// A recording as it is shown: functions that were inlined stand as frames of their own, and the interpreter's
// own C (its loop, the plumbing of a call, what starts a program or a thread) is folded away where Python or
// C frames tell the same. Everything that shows a recording calls this once, first. Pure.
#pragma once

#include <string_view>

#include "phlox/profile/profile.h"
#include "phlox/profile/view.h"

namespace phlox::profile {

// Folds unless the choices ask for all frames. Rewrites the stacks and what refers to them; rows of frames
// stay. Does nothing to a recording without native frames.
void show_native_frames(Profile& profile, const Choices& choices);

// Whether this C function of CPython only leads from one Python frame, or one C function, to the next.
// Suffixes that compilers add (".cold", ".constprop.0") do not count.
bool is_plumbing(std::string_view function);
// Whether it starts a program or a thread, before anything of the program runs.
bool is_start(std::string_view function);

}  // namespace phlox::profile
