// What a recording lacks of the time that its recorder was at work: the oldest that was let go (--keep,
// --max-size), and what lies between its parts (--append). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// Meta: how much was recorded before the start that is there, in nanoseconds.
inline constexpr std::string_view kLetGo = "let_go_ns";
// Meta, followed by a pid: when the kernel says that this process was started, field 22 of /proc/PID/stat.
// Whoever goes on with a recording knows by it whether a process is one that was there.
inline constexpr std::string_view kStartTicks = "start_ticks.";

struct Lacking {
  Nanoseconds let_go = 0;
  Nanoseconds between = 0;  // the sum of events `lost`
};
Lacking lacking(const Profile& profile);
// The stretches between its parts, as they came.
struct Gap {
  Nanoseconds from = 0, to = 0;
};
std::vector<Gap> gaps(const Profile& profile);
// How much of a stretch lies in them.
Nanoseconds gap_within(const std::vector<Gap>& gaps, Nanoseconds from, Nanoseconds to);

// "the first 3 h 12 min were let go; 12.3 s between were not recorded"; empty: nothing is missing.
std::string lacking_words(const Lacking& lacking);

}  // namespace phlox::profile
