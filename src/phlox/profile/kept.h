// Time of the recorder's work that a recording lacks: the oldest part that was dropped (--keep, --max-size),
// and the gaps between its parts (--append). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// Meta: how much was recorded before the present start and then dropped, in nanoseconds.
inline constexpr std::string_view kLetGo = "let_go_ns";
// Meta, followed by a pid: when the kernel started this process, field 22 of /proc/PID/stat. A recorder that
// appends knows by it whether a process is already in the recording.
inline constexpr std::string_view kStartTicks = "start_ticks.";

struct Lacking {
  Nanoseconds let_go = 0;
  Nanoseconds between = 0;  // the sum of events `lost`
};
Lacking lacking(const Profile& profile);
// The gaps between its parts, in order.
struct Gap {
  Nanoseconds from = 0, to = 0;
};
std::vector<Gap> gaps(const Profile& profile);
// How much of a span of time is inside them.
Nanoseconds gap_within(const std::vector<Gap>& gaps, Nanoseconds from, Nanoseconds to);

// "the first 3 h 12 min were let go; 12.3 s between were not recorded"; empty: nothing is missing.
std::string lacking_words(const Lacking& lacking);

}  // namespace phlox::profile
