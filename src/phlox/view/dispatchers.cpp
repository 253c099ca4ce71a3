#include "phlox/view/dispatchers.h"

#include <algorithm>
#include <iterator>

namespace phlox::view {

using namespace profile;

namespace {

// Read in the sources of: starlette 0.20, 0.27, 0.37, 1.10; fastapi 0.95, 0.115, 0.165; anyio 3.7, 4.16;
// django 3.2, 5.2; asgiref 3.5, 3.13; flask 1.1, 2.2, 3.1; quart 0.22; aiohttp 3.8, 3.14; tornado 6.1, 6.6;
// bottle 0.12, 0.13; falcon 4.4; sanic 25.12; celery 5.2, 5.7; arq 0.23, 0.25, 0.26, 0.28.
constexpr std::string_view kOfDjangoViews =
    "process_view process_template_response process_exception render setup initial initialize_request "
    "finalize_response handle_exception permission_denied http_method_not_allowed";
constexpr Dispatcher kDispatchers[] = {
    // Router.app in the same file calls routes, and middlewares of mounted applications.
    {Family::starlette,
     "Starlette",
     "/starlette/routing.py",
     "app",
     {.within = "request_response. websocket_session.",
      .callers = "handle wrapped_app",
      .helpers = "__call__"}},
    {Family::starlette, "Starlette", "/starlette/endpoints.py", "dispatch"},
    // request_response in the same file calls what APIRoute.get_route_handler made, which a program may wrap.
    {Family::starlette,
     "FastAPI",
     "/fastapi/routing.py",
     "app",
     {.within = "get_request_handler. get_websocket_app."}},
    {Family::starlette, "FastAPI", "/fastapi/routing.py", "run_endpoint_function"},
    {Family::starlette,
     "FastAPI",
     "/fastapi/telemetry/_api.py",
     "_run_sync_endpoint",
     {.calls_them_in_threads = true}},
    // Also dependencies, and whatever a program gives to run_in_threadpool.
    {Family::starlette,
     "Starlette",
     "/anyio/_backends/_asyncio.py",
     "run",
     {.within = "WorkerThread.", .callers = "_bootstrap_inner", .likely_with = bit(Family::starlette)}},
    {Family::django, "Django", "/django/core/handlers/base.py", "_get_response", {.helpers = kOfDjangoViews}},
    {Family::django,
     "Django",
     "/django/core/handlers/base.py",
     "_get_response_async",
     {.helpers = kOfDjangoViews}},
    // Also what a program gives to sync_to_async and async_to_sync.
    {Family::django,
     "Django",
     "/asgiref/sync.py",
     "thread_handler",
     {.helpers = kOfDjangoViews, .likely_with = bit(Family::django)}},
    {Family::django,
     "asgiref",
     "/asgiref/sync.py",
     "main_wrap",
     {.helpers = kOfDjangoViews, .likely_with = bit(Family::django) | bit(Family::flask)}},
    {Family::flask, "Flask", "/flask/app.py", "dispatch_request"},
    {Family::quart, "Quart", "/quart/app.py", "dispatch_request"},
    {Family::aiohttp, "aiohttp", "/aiohttp/web_app.py", "_handle"},
    {Family::tornado,
     "Tornado",
     "/tornado/web.py",
     "_execute",
     {.handlers = "get head post delete patch put options wrapper"}},
    {Family::bottle, "Bottle", "/bottle.py", "_handle"},
    {Family::falcon, "Falcon", "/falcon/app.py", "__call__", {.handlers = "on_*"}},
    {Family::falcon, "Falcon", "/falcon/asgi/app.py", "__call__", {.handlers = "on_*"}},
    {Family::sanic, "Sanic", "/sanic/app.py", "handle_request"},
    // Sanic 25.12 compiles its own methods again when it starts. The code of each has the method's name as
    // its
    // file (sanic/touchup).
    {Family::sanic, "Sanic", "handle_request", "handle_request"},
    {Family::celery,
     "Celery",
     "/celery/app/trace.py",
     "trace_task",
     // A lambda checks the arguments (celery/utils/functional.py, head_from_fun).
     {.helpers = "before_start on_success on_failure on_retry after_return <lambda>"}},
};

constexpr TaskDispatcher kTaskDispatchers[] = {{"arq", "/arq/worker.py", "run_job", "/arq/"}};

// Parts of the paths of files whose functions are no handlers.
struct OwnFiles {
  Family family;
  std::string_view paths;
};
constexpr OwnFiles kOwnFiles[] = {
    {Family::starlette, "/starlette/ /fastapi/ /pydantic/"},
    {Family::django,
     "/django/core/ /django/utils/ /django/template/ /django/db/ /django/middleware/ "
     "/django/urls/ /django/http/ /django/dispatch/ /django/conf/ /django/test/"},
    {Family::flask, "/flask/ /werkzeug/"},
    {Family::quart, "/quart/ /werkzeug/ /flask/ /hypercorn/"},
    {Family::aiohttp, "/aiohttp/"},
    {Family::tornado, "/tornado/"},
    {Family::bottle, "/bottle.py"},
    {Family::falcon, "/falcon/"},
    {Family::sanic, "/sanic/ /sanic_routing/"},
    {Family::celery, "/celery/ /kombu/ /billiard/ /vine/"},
};
// For every framework.
constexpr std::string_view kNoHandlers = "/asgiref/ /anyio/ /sniffio/ /exceptiongroup/";

// Tools that put functions of theirs around the handler; they call nothing else of the program there.
constexpr std::string_view kWatching =
    "/sentry_sdk/integrations/ /ddtrace/ /opentelemetry/instrumentation/ /newrelic/ /elasticapm/ /wrapt/";

// Wrappers of libraries, which call nothing of the program but the handler. django's user_passes_test is an
// exception: it also calls the test.
struct Between {
  Family family;
  std::string_view file;       // the end of the path; with a last '/', a part of it
  std::string_view functions;  // divided by blanks
};
constexpr std::string_view kDjangoWrappers =
    "_view_wrapper _wrapped_view wrapped_view wrapper_view _wrapper_view wrapped_func inner wrapper _wrapper "
    "_cache_controlled _wrapped_view_func sensitive_post_parameters_wrapper sensitive_variables_wrapper "
    "bound_method";
constexpr Between kBetween[] = {
    {Family::django, "/contextlib.py", "inner"},
    {Family::django, "/asgiref/sync.py", "func run_child"},
    {Family::django, "/django/views/decorators/", kDjangoWrappers},
    {Family::django, "/django/utils/decorators.py", kDjangoWrappers},
    {Family::django, "/django/contrib/auth/decorators.py", kDjangoWrappers},
    {Family::django, "/django/contrib/auth/mixins.py", "dispatch"},
    {Family::django, "/django/contrib/admin/", "wrapper inner"},
    {Family::django, "/django/views/generic/base.py", "view dispatch"},
    {Family::django, "/rest_framework/views.py", "dispatch"},
    {Family::django, "/rest_framework/viewsets.py", "view"},
    {Family::django, "/rest_framework/decorators.py", "handler"},
    {Family::flask, "/flask/views.py", "view dispatch_request"},
    {Family::flask, "/flask_restful/__init__.py", "wrapper dispatch_request"},
    {Family::flask, "/flask_restx/api.py", "wrapper"},
    {Family::flask, "/flask_restx/resource.py", "dispatch_request"},
    {Family::flask, "/flask_login/utils.py", "decorated_view"},
    {Family::flask, "/flask_jwt_extended/view_decorators.py", "decorator"},
    {Family::quart, "/quart/views.py", "view dispatch_request"},
    {Family::aiohttp, "/aiohttp/web_urldispatcher.py", "_iter handler_wrapper"},
    {Family::aiohttp, "/aiohttp/web_middlewares.py", "impl"},
    {Family::starlette, "/slowapi/extension.py", "async_wrapper sync_wrapper"},
    {Family::tornado, "/tornado/web.py", "wrapper"},
    {Family::tornado, "/tornado/gen.py", "wrapper"},
    {Family::bottle, "/bottle.py", "wrapper"},
    {Family::celery, "/celery/app/trace.py", "__protected_call__"},
    {Family::celery, "/celery/app/autoretry.py", "run"},
    {Family::celery, "/celery/app/task.py", "__call__"},
};

// What programs call the inner function of a decorator.
constexpr std::string_view kWrappers =
    "wrapper wrapped inner decorated decorator _wrapper _wrapped _inner _decorated decorated_view "
    "decorated_function decorated_func wrapped_view wrapped_func wrapped_function _wrapped_view wrap "
    "async_wrapper sync_wrapper view_wrapper wrapper_func wrapper_function";

// Calls `test` for each word until it returns true.
template <class Test>
bool any_word(std::string_view words, Test&& test) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (end > 0 && test(words.substr(0, end))) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

bool is_one_of(std::string_view words, std::string_view name) {
  return any_word(words, [&](std::string_view word) {
    if (!word.ends_with('*')) return word == name;
    word.remove_suffix(1);
    return name.starts_with(word);
  });
}

bool contains_one_of(std::string_view words, std::string_view text) {
  return any_word(words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// co_name; some tools record only the qualified name.
std::string_view name_of(const Frame& frame) {
  const std::string_view name = frame.function.empty() ? frame.qualified_name : frame.function;
  return name.substr(name.rfind('.') + 1);
}

bool knows_qualified_name(const Frame& frame) {
  return frame.qualified_name.find('.') != std::string::npos;
}

bool is_installed(const Frame& frame) {
  return contains_one_of("/site-packages/ /dist-packages/", frame.file);
}

bool is_of_standard_library(const Frame& frame) {
  if (frame.file.starts_with("<frozen ")) return true;
  const size_t at = frame.file.find("/lib/python");
  return at != std::string::npos && !is_installed(frame);
}

bool is_special(std::string_view name) {
  return name.starts_with("__") && name.ends_with("__") && name != "__call__";
}

bool is_own(const Dispatcher& dispatcher, const Frame& frame) {
  if (contains_one_of(kNoHandlers, frame.file)) return true;
  return std::any_of(std::begin(kOwnFiles), std::end(kOwnFiles), [&](const OwnFiles& row) {
    return row.family == dispatcher.family && contains_one_of(row.paths, frame.file);
  });
}

bool is_wrapper(const Dispatcher& dispatcher, const Frame& frame) {
  const std::string_view name = name_of(frame);
  // A task's base class: `with app.app_context(): return self.run()`.
  if (dispatcher.family == Family::celery && name == "__call__") return true;
  if (dispatcher.family == Family::aiohttp && name.find("middleware") != std::string_view::npos) return true;
  const bool is_closure =
      !knows_qualified_name(frame) || frame.qualified_name.ends_with(">." + std::string(name));
  return is_closure && is_one_of(kWrappers, name);
}

}  // namespace

bool is_known_between(const Dispatcher& dispatcher, const Frame& frame) {
  if (contains_one_of(kWatching, frame.file)) return true;
  return std::any_of(std::begin(kBetween), std::end(kBetween), [&](const Between& row) {
    const bool is_file = row.file.ends_with('/') ? frame.file.find(row.file) != std::string::npos
                                                 : frame.file.ends_with(row.file);
    return row.family == dispatcher.family && is_file && is_one_of(row.functions, name_of(frame));
  });
}

bool may_dispatch(const Frame& frame) {
  const std::string_view name = name_of(frame);
  return frame.kind == FrameKind::python &&
         std::any_of(std::begin(kDispatchers), std::end(kDispatchers), [&](const Dispatcher& row) {
           return name == row.function && frame.file.ends_with(row.file);
         });
}

std::string_view framework_named(std::string_view name) {
  for (const Dispatcher& one : kDispatchers) {
    if (one.framework == name) return one.framework;
  }
  for (const TaskDispatcher& one : kTaskDispatchers) {
    if (one.framework == name) return one.framework;
  }
  return {};
}

const TaskDispatcher* task_dispatcher_of(const Frame& frame) {
  for (const TaskDispatcher& one : kTaskDispatchers) {
    if (name_of(frame) == one.function && frame.file.ends_with(one.file)) return &one;
  }
  return nullptr;
}

bool is_handler_of(const TaskDispatcher& dispatcher, const Frame& coroutine) {
  return coroutine.kind == FrameKind::python && !contains_one_of(dispatcher.own, coroutine.file) &&
         !contains_one_of(kNoHandlers, coroutine.file) && !is_of_standard_library(coroutine);
}

const Dispatcher* dispatcher_of(const Frame& frame, const Frame* caller) {
  const std::string_view name = name_of(frame);
  for (const Dispatcher& row : kDispatchers) {
    if (name != row.function || !frame.file.ends_with(row.file)) continue;
    const DispatchRule& rule = row.rule;
    if (rule.within.empty()) return &row;
    if (knows_qualified_name(frame)) {
      if (contains_one_of(rule.within, frame.qualified_name)) return &row;
    } else if (rule.callers.empty() || (caller != nullptr && is_one_of(rule.callers, name_of(*caller)))) {
      return &row;
    }
  }
  return nullptr;
}

Called called_by(const Dispatcher& dispatcher, const Frame& frame) {
  const std::string_view name = name_of(frame);
  if (is_known_between(dispatcher, frame)) return Called::between;
  if (is_of_standard_library(frame) || is_own(dispatcher, frame)) return Called::other;
  if (is_special(name) || is_one_of(dispatcher.rule.helpers, name)) return Called::other;
  if (is_installed(frame)) {
    // A library's middleware is more common than a library's handler.
    if (dispatcher.family == Family::aiohttp) return Called::between;
    if (dispatcher.rule.likely_with != 0) return Called::other;
  }
  if (!dispatcher.rule.handlers.empty() && !is_one_of(dispatcher.rule.handlers, name)) return Called::other;
  return is_wrapper(dispatcher, frame) ? Called::wrapper : Called::handler;
}

bool may_call_a_middleware(const Dispatcher& dispatcher) {
  return dispatcher.family == Family::aiohttp;
}

}  // namespace phlox::view
