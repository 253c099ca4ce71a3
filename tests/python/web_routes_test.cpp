// Tables of routes out of memory that no program ever had: every row of the table that knows modules and
// sets.
#include "phlox/python/web_routes.h"

#include <gtest/gtest.h>

#include "support/fake_asyncio.h"
#include "support/layout_rows.h"

namespace phlox::python {
namespace {

using Attributes = std::map<std::string, RemoteAddress>;
using Words = std::vector<std::string>;

bool has_tables(const Layout& layout) {
  return layout.task.coro.present();
}

class EveryRoute : public testing::TestWithParam<const Layout*> {
 protected:
  RemoteAddress text(const std::string& words) { return program.fake.string(words); }
  RemoteAddress list(const std::vector<RemoteAddress>& items) {
    const RemoteAddress at = program.object(program.type("list"), 64),
                        table = program.fake.memory().allocate(8 * items.size() + 8);
    program.fake.set(at, layout.list.ob_size, uint64_t{items.size()});
    program.fake.set(at, layout.list.ob_item, table);
    for (size_t i = 0; i < items.size(); ++i) program.fake.memory().put_value(table + 8 * i, items[i].value);
    return at;
  }
  RemoteAddress set(const Words& words) {
    std::vector<RemoteAddress> items;
    for (const std::string& word : words) items.push_back(text(word));
    return program.set(items);
  }
  RemoteAddress function(const std::string& name, const Attributes& names = {}) {
    const RemoteAddress at = program.object(program.type("function"), 160), head = at + *layout.object.size;
    const bool old = layout.major == 3 && layout.minor < 10;
    program.fake.memory().put_value(head + (old ? 0 : 32), program.fake.code(name).value);
    if (!names.empty()) program.fake.memory().put_value(head + (old ? 56 : 72), program.dict(names).value);
    return at;
  }
  RemoteAddress route(const std::string& path, RemoteAddress endpoint, const Words& methods) {
    return program.instance("Route",
                            {{"path", text(path)}, {"endpoint", endpoint}, {"methods", set(methods)}});
  }
  RemoteAddress router(const std::vector<RemoteAddress>& routes) {
    return program.instance("Router", {{"routes", list(routes)}});
  }
  RemoteAddress app(const std::vector<RemoteAddress>& routes) {
    return program.instance("Starlette", {{"router", router(routes)}});
  }
  // "GET /items read_item"
  Words read(const Attributes& globals, const std::string& framework = "starlette.routing",
             const Attributes& of_framework = {}) {
    auto& fake = program.fake;
    fake.set(fake.state(), layout.interpreter.modules,
             program.dict({{framework, program.module(of_framework)}, {"app", program.module(globals)}}));
    Words out;
    for (const WebRoute& one : read_web_routes(fake.interpreter(), fake.memory()))
      out.push_back(one.method + " " + one.path + " " + one.function);
    std::sort(out.begin(), out.end());
    return out;
  }

  const Layout& layout = *GetParam();
  FakeAsyncio program{layout};
};
INSTANTIATE_TEST_SUITE_P(WebRoutes, EveryRoute, testing::ValuesIn(test::layout_rows(has_tables)),
                         test::row_name);

TEST_P(EveryRoute, of_starlette_has_its_methods_and_the_prefix_of_what_it_is_mounted_in) {
  const RemoteAddress inner = app({route("/{id}", function("order"), {"GET", "HEAD"})});
  const RemoteAddress outer =
      app({route("/items/{id}", function("read_item"), {"GET", "HEAD"}),
           route("/items/{id}", function("write_item"), {"POST", "PUT"}),
           program.instance("Mount", {{"path", text("/orders")}, {"app", inner}}),
           program.instance("WebSocketRoute", {{"path", text("/ws")}, {"endpoint", function("listen")}}),
           program.instance("_IncludedRouter",
                            {{"original_router", router({route("/price", function("price"), {"GET"})})},
                             {"include_context", program.instance("Context", {{"prefix", text("/api")}})}})});
  const Words expected = {"GET /api/price price",       "GET /items/{id} read_item",
                          "GET /orders/{id} order",     "POST /items/{id} write_item",
                          "PUT /items/{id} write_item", "WEBSOCKET /ws listen"};
  EXPECT_EQ(read({{"main", outer}}), expected);
  EXPECT_EQ(read({{"main", outer}, {"a_part", inner}}), expected) << "it is not an application of its own";
}

TEST_P(EveryRoute, of_a_decorated_function_is_also_that_of_what_it_wraps) {
  const RemoteAddress wrapper = function("wrapper", {{"__wrapped__", function("read_item")}});
  EXPECT_EQ(read({{"main", app({route("/items", wrapper, {"GET"})})}}),
            (Words{"GET /items read_item", "GET /items wrapper"}));
}

TEST_P(EveryRoute, of_flask_is_found_by_the_name_of_the_endpoint) {
  const auto rule = [&](const char* path, const char* endpoint, const Words& methods) {
    return program.instance("Rule",
                            {{"rule", text(path)}, {"endpoint", text(endpoint)}, {"methods", set(methods)}});
  };
  const RemoteAddress send = rule("/static/<path:f>", "static", {"GET"}),
                      read_item = rule("/items/<int:i>", "api.read", {"GET", "HEAD", "OPTIONS"});
  const RemoteAddress functions =
      program.dict({{"api.read", function("read_item")}, {"static", function("send")}});
  for (const Attributes& map : {Attributes{{"_rules", list({send, read_item})}},
                                {{"_rules_by_endpoint", program.dict({{"static", list({send})},
                                                                      {"api.read", list({read_item})}})}}}) {
    const RemoteAddress app =
        program.instance("Flask", {{"url_map", program.instance("Map", map)}, {"view_functions", functions}});
    EXPECT_EQ(read({{"app", app}}, "flask.app"), (Words{"GET /items/<int:i> read_item"}));
  }
}

TEST_P(EveryRoute, of_tornado_is_the_pattern_of_the_rule_and_the_methods_of_its_class) {
  const auto base = [&](const char* name, const char* of) {
    program.fake.set(program.type(name), layout.type.tp_base, program.type(of).value);
  };
  base("Application", "ReversibleRouter");
  base("_ApplicationRouter", "ReversibleRuleRouter");
  base("ItemHandler", "RequestHandler");
  base("RequestHandler", "type");
  const auto methods = [&](const char* name, const Attributes& of) {
    program.fake.memory().put_value(program.type(name) + *layout.type.tp_base + 8, program.dict(of).value);
    program.fake.set(program.type(name), layout.object.ob_type, program.type("type").value);
  };
  methods("RequestHandler", {{"post", function("_unimplemented_method")}});
  methods("ItemHandler", {{"get", function("read_item")}});
  const RemoteAddress regex = program.object(program.type("re.Pattern"), 64);
  program.fake.memory().put_value(regex + *layout.object.size + 32, text("/items/(\\d+)$").value);
  const RemoteAddress rule =
      program.instance("Rule", {{"matcher", program.instance("PathMatches", {{"regex", regex}})},
                                {"target", program.type("ItemHandler")}});
  const RemoteAddress wildcard = program.instance("_ApplicationRouter", {{"rules", list({rule})}});
  const RemoteAddress any =
      program.instance("Rule", {{"matcher", program.instance("AnyMatches", {})}, {"target", wildcard}});
  const RemoteAddress app = program.instance(
      "Application", {{"wildcard_router", wildcard},
                      {"default_router", program.instance("_ApplicationRouter", {{"rules", list({any})}})}});
  EXPECT_EQ(read({{"app", app}}, "tornado.web"), (Words{"GET /items/(\\d+) read_item"}));
}

TEST_P(EveryRoute, of_bottle_is_also_that_of_the_default_application) {
  program.fake.set(program.type("AppStack"), layout.type.tp_base, program.type("list").value);
  const auto route = [&](const char* path, const char* method, const char* name) {
    return program.instance("Route",
                            {{"rule", text(path)}, {"method", text(method)}, {"callback", function(name)}});
  };
  const RemoteAddress app =
      program.instance("Bottle", {{"routes", list({route("/items/<i>", "GET", "read_item")})}});
  const RemoteAddress first = program.instance("Bottle", {{"routes", list({route("/any", "ANY", "any")})}});
  const RemoteAddress stack = list({first});
  program.fake.set(stack, layout.object.ob_type, program.type("AppStack").value);
  EXPECT_EQ(read({{"app", app}}, "bottle", {{"app", stack}, {"default_app", stack}}),
            (Words{" /any any", "GET /items/<i> read_item"}));
}

// Classes with __slots__: the attributes are not in a dictionary.
TEST_P(EveryRoute, of_falcon_and_sanic_are_found_in_slots) {
  std::map<std::string, std::map<std::string, uint64_t>> slots;
  const auto with_slots = [&](const char* name, const Words& names) {
    Attributes descriptors;
    uint64_t offset = *layout.object.size;
    for (const std::string& of : names) {
      const RemoteAddress member = program.fake.memory().allocate(32),
                          descriptor = program.object(program.type("member_descriptor"), 64);
      program.fake.memory().put_value(member + 16, offset);
      program.fake.memory().put_value(descriptor + *layout.object.size + 24, member.value);
      descriptors[of] = descriptor;
      slots[name][of] = offset;
      offset += 8;
    }
    const RemoteAddress type = program.type(name);
    program.fake.set(type, layout.type.tp_basicsize, offset);
    program.fake.memory().put_value(type + *layout.type.tp_base + 8, program.dict(descriptors).value);
  };
  const auto instance = [&](const char* name, const Attributes& of) {
    const RemoteAddress at = program.object(program.type(name), 128);
    for (const auto& [attribute, value] : of)
      program.fake.memory().put_value(at + slots[name][attribute], value.value);
    return at;
  };
  with_slots("App", {"_sinks", "_router"});
  with_slots("CompiledRouter", {"_roots"});
  with_slots("Sanic", {"router"});
  with_slots("Route", {"handler", "methods", "path"});
  const auto node = [&](const char* path, const Attributes& methods,
                        const std::vector<RemoteAddress>& children) {
    return program.instance(
        "CompiledRouterNode",
        {{"uri_template", text(path)}, {"method_map", program.dict(methods)}, {"children", list(children)}});
  };
  const RemoteAddress roots =
      list({node("/items", {}, {node("/items/{item}", {{"GET", function("on_get")}}, {})})});
  const RemoteAddress falcon =
      instance("App", {{"_router", instance("CompiledRouter", {{"_roots", roots}})}});
  EXPECT_EQ(read({{"app", falcon}}, "falcon"), (Words{"GET /items/{item} on_get"}));
  const RemoteAddress route = instance(
      "Route",
      {{"handler", function("read_item")}, {"methods", set({"GET"})}, {"path", text("items/<item:int>")}});
  const RemoteAddress group = program.instance("RouteGroup", {{"_routes", list({route})}});
  const RemoteAddress router =
      program.instance("Router", {{"dynamic_routes", program.dict({{"items", group}})}});
  EXPECT_EQ(read({{"app", instance("Sanic", {{"router", router}})}}, "sanic.app"),
            (Words{"GET /items/<item:int> read_item"}));
  // An application of the program's own that has no router.
  with_slots("App", {"_sinks"});
  EXPECT_EQ(read({{"app", falcon}}, "falcon"), Words());
}

TEST_P(EveryRoute, of_django_is_the_chain_of_patterns_from_the_root_of_the_settings) {
  const auto pattern = [&](const char* path) {
    return program.instance("RoutePattern", {{"_route", text(path)}});
  };
  const RemoteAddress inner = list({program.instance(
      "URLPattern", {{"pattern", pattern("items/<int:i>/")}, {"callback", function("read_item")}})});
  const RemoteAddress urls =
      list({program.instance("URLResolver", {{"pattern", pattern("api/")}, {"urlconf_name", inner}})});
  const RemoteAddress settings = program.instance(
      "LazySettings", {{"_wrapped", program.instance("Settings", {{"ROOT_URLCONF", text("app")}})}});
  auto& fake = program.fake;
  fake.set(fake.state(), layout.interpreter.modules,
           program.dict({{"django.urls.resolvers", program.module({})},
                         {"django.conf", program.module({{"settings", settings}})},
                         {"app", program.module({{"urlpatterns", urls}})}}));
  const auto found = read_web_routes(fake.interpreter(), fake.memory());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].path, "/api/items/<int:i>/");
  EXPECT_EQ(found[0].method, "");
  EXPECT_EQ(found[0].function, "read_item");
}

TEST_P(EveryRoute, of_an_application_that_no_module_has_is_found_in_memory) {
  const RemoteAddress start = program.fake.memory().allocate(16);
  // The first field of the next object is not that of a live application: it only refers to the class.
  const RemoteAddress other = program.object(program.type("cell"), 64);
  program.fake.memory().put_value(other + 32, program.type("Starlette").value);
  app({route("/items", function("read_item"), {"GET"})});
  const RemoteAddress end = program.fake.memory().allocate(16);
  const Attributes of_framework{{"Starlette", program.type("Starlette")}};
  auto& fake = program.fake;
  fake.set(fake.state(), layout.interpreter.modules,
           program.dict({{"starlette.routing", program.module({})},
                         {"starlette.applications", program.module(of_framework)}}));
  EXPECT_TRUE(read_web_routes(fake.interpreter(), fake.memory()).empty()) << "without a search";
  RouteSources sources;
  sources.heap = [&] { return std::vector<HeapRange>{{start, end}}; };
  const auto found = read_web_routes(fake.interpreter(), fake.memory(), sources);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].path, "/items");
  sources.heap = [&] { return std::vector<HeapRange>{{end, end + 16}}; };
  EXPECT_TRUE(read_web_routes(fake.interpreter(), fake.memory(), sources).empty());
}

TEST_P(EveryRoute, is_not_looked_for_without_a_framework_and_a_table_that_contains_itself_ends) {
  const RemoteAddress one = app({route("/items", function("read_item"), {"GET"})});
  EXPECT_EQ(read({{"main", one}}, "wsgiref.handlers"), Words());
  // Several times, so that it has a million paths.
  const std::vector<RemoteAddress> places(9, RemoteAddress(0x10));
  const RemoteAddress routes = list(places);
  const RemoteAddress loop = program.instance("Starlette", {{"routes", routes}});
  const RemoteAddress again = program.instance("Mount", {{"path", text("/again")}, {"app", loop}});
  const RemoteAddress table(program.fake.memory().get<uint64_t>(routes + *layout.list.ob_item));
  for (uint64_t i = 1; i < places.size(); ++i) program.fake.memory().put_value(table + 8 * i, again.value);
  program.fake.memory().put_value(table + 8, route("/items", function("read_item"), {"GET"}).value);
  const RemoteAddress top = program.instance("Mount", {{"path", text("/top")}, {"app", loop}});
  const Words found = read({{"main", app({top})}});
  EXPECT_NE(std::find(found.begin(), found.end(), "GET /top/items read_item"), found.end());
  EXPECT_NE(std::find(found.begin(), found.end(), "GET /top/again/items read_item"), found.end());
}

}  // namespace
}  // namespace phlox::python
