#include "phlox/profile/web_routes.h"

#include <fmt/format.h>

#include <algorithm>

namespace phlox::profile {

std::string route_key(std::string_view function, int32_t first_line, std::string_view file) {
  return fmt::format("{}{}\t{}\t{}", kRoutes, first_line, function, file);
}

std::vector<std::string> routes_of(const Profile& profile, const Frame& frame) {
  std::vector<std::string> routes;
  if (frame.kind != FrameKind::python) return routes;
  const auto found = profile.meta().find(route_key(frame.qualified_name, frame.first_line, frame.file));
  if (found == profile.meta().end()) return routes;
  for (std::string_view rest = found->second; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (!line.empty()) routes.emplace_back(line);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return routes;
}

std::string routes_words(const std::vector<std::string>& routes) {
  constexpr size_t kShown = 2;
  std::string words;
  for (size_t i = 0; i < std::min(routes.size(), kShown); ++i) words += (i > 0 ? ", " : "") + routes[i];
  if (routes.size() > kShown) words += fmt::format(" and {} more", routes.size() - kShown);
  return words;
}

}  // namespace phlox::profile
