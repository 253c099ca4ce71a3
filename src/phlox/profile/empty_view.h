// Why a view shows nothing, in words: a misspelt thread or a time beyond the end would else be an empty
// output without a word. Used by whatever shows a recording.
#pragma once

#include <optional>
#include <string>

#include "phlox/profile/view.h"

namespace phlox::profile {

// Nothing: there is something to see.
std::optional<std::string> why_empty(const Profile& profile, const Choices& choices);

}  // namespace phlox::profile
