// What a recording lacks of the time that its recorder was at work: the oldest that was let go (--keep,
// --max-size), and what lies between its parts (--append). Pure.
#pragma once

#include <string>
#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// Meta: how much was recorded before the start that is there, in nanoseconds.
inline constexpr std::string_view kLetGo = "let_go_ns";

struct Lacking {
  Nanoseconds let_go = 0;
  Nanoseconds between = 0;  // the sum of events `lost`
};
Lacking lacking(const Profile& profile);
// "the first 3 h 12 min were let go; 12.3 s between were not recorded"; empty: nothing is missing.
std::string lacking_words(const Lacking& lacking);

}  // namespace phlox::profile
