// Says why a view shows nothing: without it, a misspelt thread or a time beyond the end would give an empty
// output without a message. Used by everything that shows a recording.
#pragma once

#include <optional>
#include <string>

#include "phlox/view/view.h"

namespace phlox::view {

// Nothing: the view is not empty.
std::optional<std::string> why_empty(const profile::Profile& profile, const Choices& choices);

}  // namespace phlox::view
