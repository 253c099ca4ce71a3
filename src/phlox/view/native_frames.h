// Prepares a recording to be shown: inlined functions become frames of their own, and the interpreter's own C
// (its loop, functions that only pass a call on, functions that start a program or a thread) is folded away
// where Python or C frames show the same. For prepared.h. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/view/view.h"

namespace phlox::view {

// Roles that are never recorded: show_native_frames() finds them.
inline constexpr auto kInterpreterCode =
    static_cast<profile::FrameRole>(100);  // its own C: its time is Python's
inline constexpr auto kCLibrary =
    static_cast<profile::FrameRole>(101);  // its time belongs to the code that calls it

// Whether it is the interpreter's own C, its loop included.
bool is_interpreter(const profile::Frame& frame);

// Folds unless the choices ask for all frames. Rewrites the stacks and the rows that refer to them. Rows of
// frames stay, and say whether they are the interpreter's own C or the C library's. Does nothing to a
// recording without native frames.
void show_native_frames(profile::Profile& profile, const Choices& choices);

// Whether a native function has no name but its address, in a file that can be told by its build-id. With
// By::place.
bool is_address_of_known_file(const profile::Profile& profile, const Label& label);

// "libopenblas": the library whose code a thread ran, if no native frames are known; empty: not known.
std::string code_library(const profile::Profile& profile, const profile::Sample& sample);

// Modules with missing names, those without functions first. After show_native_frames() they include code
// made at run time.
std::vector<profile::Module> modules_without_names(const profile::Profile& profile);

}  // namespace phlox::view
