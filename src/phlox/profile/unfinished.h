// A recording that its recorder has not ended: how long it is, and whether it still grows. Pure.
#pragma once

#include <string>
#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// In the meta of a profile that was read, never in a file: not empty if its recorder was running.
inline constexpr std::string_view kGrows = "grows";

// The recorder writes its start first and its end last.
bool is_unfinished(const Profile& profile);
// The end of the recording; for an unfinished one, the time of the last row. 0: there are no rows.
Nanoseconds seen_until(const Profile& profile);
bool grows(const Profile& profile);
// "still being recorded: 12.3 s so far", "the recorder was killed after 12.3 s: ..."; empty: it is finished.
std::string unfinished_words(const Profile& profile);

// Keys of meta, each with a sentence: Pythons that ran at the same time and are not recorded, and one that
// could not be read.
inline constexpr std::string_view kNotRecorded = "not_recorded";
inline constexpr std::string_view kCouldNotBeRead = "could_not_be_read";
// Both sentences; empty: there were none.
std::string not_recorded_words(const Profile& profile);

}  // namespace phlox::profile
