// Makes an answer small enough for a model: shortens lists and texts until it fits, and says what was left
// out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "phlox/mcp/json.h"

namespace phlox::mcp {

// `most`: bytes of the value as it is written. Adds to `cut` what was left out: "functions: 10 of 45".
Json fitted(Json value, size_t most, std::vector<std::string>& cut);

// The first whole lines that fit, or the start of the first one. Adds to `cut` if that is not all.
std::string fitted_text(std::string text, size_t most, std::vector<std::string>& cut);

}  // namespace phlox::mcp
