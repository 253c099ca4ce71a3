// Of a recording that its recorder has not ended: how far it goes, and whether it grows on. Pure.
#pragma once

#include <string>
#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// In the meta of a profile that was read, never in a file: not empty when its recorder was at work.
inline constexpr std::string_view kGrows = "grows";

// The recorder notes its start first and its end last.
bool is_unfinished(const Profile& profile);
// The end of the recording; of an unfinished one, of what was seen last. 0: nothing was.
Nanoseconds seen_until(const Profile& profile);
bool grows(const Profile& profile);
// "still being recorded: 12.3 s so far", "the recorder was killed after 12.3 s: ..."; empty: it is finished.
std::string unfinished_words(const Profile& profile);

// Keys of meta, each with a sentence: Pythons that ran beside the recorded ones, and one that could not be
// read.
inline constexpr std::string_view kNotRecorded = "not_recorded";
inline constexpr std::string_view kCouldNotBeRead = "could_not_be_read";
// Both; empty: there were none.
std::string not_recorded_words(const Profile& profile);

}  // namespace phlox::profile
