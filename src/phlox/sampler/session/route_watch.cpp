#include "phlox/sampler/session/route_watch.h"

#include <algorithm>
#include <vector>

#include "phlox/process/resident_memory.h"
#include "phlox/profile/web_routes.h"
#include "phlox/python/web_routes.h"

namespace phlox::sampler {
namespace {

constexpr uint64_t kMostForRoutes = uint64_t{1} << 30;  // bytes

std::vector<python::HeapRange> memory_of(pid_t pid) {
  std::vector<python::HeapRange> ranges;
  const auto memory = process::read_resident_memory(pid, kMostForRoutes);
  if (!memory) return ranges;
  for (const process::PageRun& run : memory->runs) ranges.push_back({run.start, run.end});
  return ranges;
}

}  // namespace

void RouteWatch::look(Nanoseconds now, const std::function<void()>& between) {
  if (now < due_) return;
  due_ = now + 2 * (now - begin_);
  python::RouteSources sources;
  sources.between = between;
  // At the first look, the program may still be starting.
  if (++looks_ == 2 || looks_ == 3) sources.heap = [this] { return memory_of(pid_); };
  std::map<std::string, std::string> found;
  for (const python::WebRoute& route : python::read_web_routes(interpreter_, memory_, sources)) {
    std::string& lines = found[profile::route_key(route.function, route.first_line, route.file)];
    std::string line = route.method.empty() ? route.path : route.method + " " + route.path;
    std::replace(line.begin(), line.end(), '\n', ' ');
    lines += (lines.empty() ? "" : "\n") + line;
  }
  for (auto& [key, lines] : found) {
    const auto [at, fresh] = put_.try_emplace(key);
    if (!fresh && at->second == lines) continue;
    sink_.emit_meta(key, lines);
    at->second = std::move(lines);
  }
}

}  // namespace phlox::sampler
