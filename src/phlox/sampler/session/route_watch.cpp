#include "phlox/sampler/session/route_watch.h"

#include "phlox/profile/web_routes.h"
#include "phlox/python/web_routes.h"

namespace phlox::sampler {

void RouteWatch::look(Nanoseconds now, const std::function<void()>& between) {
  if (now < due_) return;
  due_ = now + 2 * (now - begin_);
  std::map<std::string, std::string> found;
  for (const python::WebRoute& route : python::read_web_routes(interpreter_, memory_, between)) {
    std::string& lines = found[profile::route_key(route.function, route.first_line, route.file)];
    lines +=
        (lines.empty() ? "" : "\n") + (route.method.empty() ? route.path : route.method + " " + route.path);
  }
  for (auto& [key, lines] : found) {
    const auto [at, fresh] = put_.try_emplace(key);
    if (!fresh && at->second == lines) continue;
    sink_.emit_meta(key, lines);
    at->second = std::move(lines);
  }
}

}  // namespace phlox::sampler
