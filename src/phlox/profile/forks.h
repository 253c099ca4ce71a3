// Where a forked process began. A child of fork() has the frames of its parent on its stack, as they were at
// the fork: they say what the parent did then, and nothing about the child. They end at a marker frame, and
// are shown or left out. Everything that shows a recording calls this once, before show_native_frames().
// Pure.
//
// Which frames are inherited is proved in one of two ways, or nothing is changed:
// - a library's function calls its child's part in the child alone: Popen._launch, and _bootstrap beneath it;
// - the process is a fork (kForkedFrom), and its parent's stack was the same up to there both before and
// after
//   the fork.
// They stay inherited until the child returns from them.
#pragma once

#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// Meta, with the row of the process behind it: the row of the process that it is a fork of, without an execve
// since then.
inline constexpr std::string_view kForkedFrom = "forked_from.";

// The marker's name.
inline constexpr std::string_view kForkedHere = "(forked here)";
bool is_fork_marker(const Frame& frame);

enum class Inherited { hidden, shown };

void show_forks(Profile& profile, Inherited inherited);

}  // namespace phlox::profile
