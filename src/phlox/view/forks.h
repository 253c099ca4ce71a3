// Where a forked process begins. A child of fork() has its parent's frames on its stack, as they were at the
// fork: they show what the parent did then, and nothing about the child. They end at a marker frame, and are
// shown or left out. For prepared.h. Pure.
//
// Inherited frames are proved in one of two ways; otherwise nothing is changed:
// - a library's function calls its child's part only in the child: Popen._launch, and _bootstrap below it;
// - the process is a fork (kForkedFrom), and its parent's stack was the same up to there both before and
//   after the fork.
// Frames stay inherited until the child returns from them.
#pragma once

#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::view {

// The marker's name.
inline constexpr std::string_view kForkedHere = "(forked here)";
bool is_fork_marker(const profile::Frame& frame);

enum class Inherited { hidden, shown };

void show_forks(profile::Profile& profile, Inherited inherited);

}  // namespace phlox::view
