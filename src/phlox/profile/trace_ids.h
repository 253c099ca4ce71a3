// The ids of a trace and of its spans as text: lower-case hex digits, as W3C Trace Context writes them. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "phlox/profile/model.h"

namespace phlox::profile {

std::string id_text(std::span<const uint8_t> id);

// Only digits of lower case, and exactly as many as the id has.
template <size_t Size>
std::optional<std::array<uint8_t, Size>> parse_id(std::string_view text);

}  // namespace phlox::profile
