// Says why a view shows nothing: without it, a misspelt thread or a time beyond the end would give an empty
// output without a message. Used by everything that shows a recording.
#pragma once

#include <optional>
#include <string>

#include "phlox/profile/view.h"

namespace phlox::profile {

// Nothing: the view is not empty.
std::optional<std::string> why_empty(const Profile& profile, const Choices& choices);

}  // namespace phlox::profile
