// Which method and path of a web application a function answers: a fact of the recording (meta) for each such
// function, read from the application's own table of routes. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

inline constexpr std::string_view kRoutes = "route\t";  // begins the keys of these facts
// The key of the fact; its value has one route a line: "GET /items/{item_id}".
std::string route_key(std::string_view function, int32_t first_line, std::string_view file);

// Sorted; empty: none is known.
std::vector<std::string> routes_of(const Profile& profile, const Frame& frame);

// The first two of them, and how many there are beyond.
std::string routes_words(const std::vector<std::string>& routes);

}  // namespace phlox::profile
