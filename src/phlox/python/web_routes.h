// The routes of a target's web applications: which function answers which method and path. Read from the
// applications' own tables (Starlette, FastAPI, Flask, Quart, aiohttp, Tornado,
// Bottle, Falcon, Sanic, Django), not from requests. For code
// that has time, while the target may run: a table that changes meanwhile may be read in part.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/async_tasks.h"
#include "phlox/python/interpreter.h"

namespace phlox::python {

struct WebRoute {
  // The function, as its frames have it.
  std::string function, file;
  int32_t first_line = 0;
  std::string method;  // "GET", "WEBSOCKET"; empty: any, or the function decides
  std::string path;    // as the framework writes it: "/items/{item_id}", "/items/<int:item>"

  friend auto operator<=>(const WebRoute&, const WebRoute&) = default;
};

inline constexpr size_t kMaxWebRoutes = 5'000;

struct RouteSources {
  // Where applications are searched for if no module has one as a global variable: those that a function has
  // made (create_app()). May be missing.
  std::function<std::vector<HeapRange>()> heap;
  // Called every few milliseconds. May be missing.
  std::function<void()> between;
};

// Sorted, each once: of applications and of what is mounted in them; of Django, the project's.
std::vector<WebRoute> read_web_routes(const Interpreter& interpreter, memory::RemoteMemory& memory,
                                      const RouteSources& sources = {});

}  // namespace phlox::python
