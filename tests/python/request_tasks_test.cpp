#include "phlox/python/request_tasks.h"

#include <gtest/gtest.h>

namespace phlox::python {
namespace {

bool is_request(const char* name, const char* file) {
  return runs_one_request({name, name, file, 1});
}

TEST(RequestTasks, are_those_that_a_server_starts_for_each_request) {
  const std::string site = "/venv/lib/python3.12/site-packages";
  EXPECT_TRUE(is_request("run_asgi", (site + "/uvicorn/protocols/http/h11_impl.py").c_str()));
  EXPECT_TRUE(is_request("run_asgi", (site + "/uvicorn/protocols/http/httptools_impl.py").c_str()));
  EXPECT_TRUE(is_request("_handle", (site + "/hypercorn/asyncio/task_group.py").c_str()));
  EXPECT_TRUE(is_request("_handle", (site + "/hypercorn/trio/task_group.py").c_str()));
  EXPECT_TRUE(is_request("_execute", (site + "/tornado/web.py").c_str()));
  EXPECT_TRUE(is_request("__call__", (site + "/django/core/handlers/asgi.py").c_str()));
}

TEST(RequestTasks, of_a_connection_are_none) {
  EXPECT_FALSE(is_request("start", "/venv/aiohttp/web_protocol.py"));
  EXPECT_FALSE(is_request("connection_task", "/venv/sanic/server/protocols/http_protocol.py"));
  EXPECT_FALSE(is_request("_server_request_loop", "/venv/tornado/http1connection.py"));
  EXPECT_FALSE(is_request("run_asgi", "/venv/uvicorn/protocols/websockets/wsproto_impl.py"));
  EXPECT_FALSE(is_request("run_asgi", "/app/server.py"));
  EXPECT_TRUE(serves_a_connection({"get", "WebSocketHandler.get", "/venv/tornado/websocket.py", 1}));
  EXPECT_FALSE(serves_a_connection({"get", "Items.get", "/app/websocket.py", 1}));
}

}  // namespace
}  // namespace phlox::python
