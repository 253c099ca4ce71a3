// Coroutines that a server runs once for each request, as the outermost one of a task: the life of the task
// is the request. aiohttp, Sanic and others run one task for each connection: several requests, and the time
// between them. Decided by names. Pure.
#pragma once

#include "phlox/python/async_tasks.h"

namespace phlox::python {

bool runs_one_request(const TaskFunction& outermost);
// Whether the task of a request has become one of a connection: a WebSocket of Tornado.
bool serves_a_connection(const TaskFunction& function);

}  // namespace phlox::python
