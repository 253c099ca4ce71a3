// Functions of web frameworks and task queues that call the program's handler of a request or task, known by
// name, and what may stand between the two. endpoints.h decides what a stack shows; this file knows no
// recording. A rule belongs here only if the framework's source shows that what it calls is a handler.
#pragma once

#include <cstdint>
#include <string_view>

#include "phlox/profile/model.h"

namespace phlox::view {

enum class Family : uint8_t {
  starlette,  // FastAPI too
  django,
  flask,
  quart,
  aiohttp,
  tornado,
  bottle,
  falcon,
  sanic,
  celery,
};
constexpr uint32_t bit(Family family) {
  return 1U << static_cast<unsigned>(family);
}

// What else tells a dispatcher, and what of the functions that it calls are handlers. Names are divided by
// blanks; "on_*" is the beginning of one.
struct DispatchRule {
  // Where several functions of the file have that name: the qualified name contains one of `within`. Where
  // only co_name is known (before Python 3.11), the caller has one of the names in `callers`; empty: any.
  std::string_view within = {}, callers = {};
  // If `handlers` is not empty, nothing else is a handler. `helpers` are none.
  std::string_view handlers = {}, helpers = {};
  // Not 0: it calls other functions of the program, too. That what it calls is a handler is only likely, and
  // only in a process in which a dispatcher of one of these families was seen.
  uint32_t likely_with = 0;
  // It runs the handlers that the one of the same family with `likely_with` runs in other versions of the
  // framework. Where this one is seen, that one calls no handlers.
  bool calls_them_in_threads = false;
};
struct Dispatcher {
  Family family = Family::starlette;
  std::string_view framework;  // as people call it
  std::string_view file;       // the end of its path
  std::string_view function;   // co_name
  DispatchRule rule = {};
};

// Whether it has the name of one, in a file with the name of one.
bool may_dispatch(const profile::Frame& frame);
// `caller`: the Python function that called it; null: none. Null: it is no dispatcher.
const Dispatcher* dispatcher_of(const profile::Frame& frame, const profile::Frame* caller);

enum class Called : uint8_t {
  handler,
  between,  // belongs to the framework, or to a tool that watches it: what it calls may be the handler
  // A decorator or a middleware of the program: the framework calls it as the handler, and what it calls is
  // likely to be the real one.
  wrapper,
  other,  // no handler, and what it calls is none either
};
// What a function is that `dispatcher` called: directly, or from one that is `between`.
Called called_by(const Dispatcher& dispatcher, const profile::Frame& frame);

// A function that runs each handler as a task of its own, and awaits it with asyncio.wait_for(). Their stacks
// do not contain it.
struct TaskDispatcher {
  std::string_view framework;
  std::string_view file;      // the end of its path
  std::string_view function;  // co_name
  std::string_view own;       // parts of the paths of files whose functions are no handlers
};
// Null: it is no such function.
const TaskDispatcher* task_dispatcher_of(const profile::Frame& frame);
// Whether a coroutine that it awaits so is a handler.
bool is_handler_of(const TaskDispatcher& dispatcher, const profile::Frame& coroutine);

// The framework of that name, as its dispatchers have it; empty: there is none.
std::string_view framework_named(std::string_view name);

// Whether the tables name it as between the dispatcher and its handlers.
bool is_known_between(const Dispatcher& dispatcher, const profile::Frame& frame);

// The dispatcher runs handlers that are middlewares if the program has any: then it calls only one function.
bool may_call_a_middleware(const Dispatcher& dispatcher);

}  // namespace phlox::view
