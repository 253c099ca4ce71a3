#include "phlox/python/request_tasks.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace phlox::python {
namespace {

// Source read: uvicorn 0.20 and 0.54, hypercorn 0.14 and 0.18, Tornado 6.1 and 6.6, Django 5.2 with
// daphne 4.2, which makes a task of the application itself.
struct RequestCoroutine {
  std::string_view name, file;  // a part of the file's path
};
constexpr RequestCoroutine kRequestCoroutines[] = {
    {"run_asgi", "/uvicorn/protocols/http/"},      {"_handle", "/hypercorn/asyncio/task_group.py"},
    {"_handle", "/hypercorn/trio/task_group.py"},  {"_execute", "/tornado/web.py"},
    {"__call__", "/django/core/handlers/asgi.py"}, {"__call__", "/django/contrib/staticfiles/handlers.py"},
};

}  // namespace

bool runs_one_request(const TaskFunction& outermost) {
  return std::any_of(
      std::begin(kRequestCoroutines), std::end(kRequestCoroutines), [&](const RequestCoroutine& one) {
        return outermost.name == one.name && outermost.file.find(one.file) != std::string::npos;
      });
}

bool serves_a_connection(const TaskFunction& function) {
  return std::string_view(function.file).ends_with("/tornado/websocket.py");
}

}  // namespace phlox::python
