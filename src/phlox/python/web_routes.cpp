#include "phlox/python/web_routes.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "phlox/python/code_object.h"
#include "phlox/python/web_objects.h"

namespace phlox::python {
namespace {

constexpr size_t kInterpretersWithRoutes = 64;
constexpr size_t kModulesAtOnce = 32;  // between two pauses
constexpr size_t kWordsAtOnce = size_t{1} << 17;
constexpr size_t kMostDeep = 12;  // applications in applications, wrappers around wrappers
constexpr size_t kMostApplications = 200;
constexpr std::array<std::string_view, 7> kVerbs = {"get",    "post", "put",    "patch",
                                                    "delete", "head", "options"};

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

enum class AppKind : uint8_t { none, starlette, flask, aiohttp, tornado, bottle, bottles, falcon, sanic };

class ReadingRoutes : WebObjects {
 public:
  ReadingRoutes(const Layout& layout, memory::RemoteMemory& memory, const RouteSources& sources)
      : WebObjects(layout, memory, sources.between), source_(memory), sources_(sources) {}

  void read(RemoteAddress interpreter) {
    pages_.forget();
    const auto modules = objects_.modules(interpreter);
    if (!modules) return;
    modules_ = *modules;
    const auto imported = [&](std::string_view name) {
      const auto found = objects_.find(modules_, name);
      return found && *found;
    };
    for (const char* framework : {"starlette.routing", "flask.app", "quart.app", "aiohttp.web_app",
                                  "tornado.web", "bottle", "falcon", "sanic.app"}) {
      if (!imported(framework)) continue;
      read_applications();
      break;
    }
    if (imported("django.urls.resolvers")) read_django();
  }
  std::vector<WebRoute> take() { return {routes_.begin(), routes_.end()}; }

 private:
  // HEAD is answered by the handler of GET, OPTIONS by the framework.
  std::vector<std::string> methods_of(RemoteAddress object) {
    std::vector<std::string> all;
    for (const RemoteAddress item : items(object)) {
      if (std::string one = upper(text(item)); !one.empty()) all.push_back(std::move(one));
    }
    if (all.size() > 1) std::erase(all, "OPTIONS");
    if (std::find(all.begin(), all.end(), "GET") != all.end()) std::erase(all, "HEAD");
    return all;
  }

  // --- handlers ---

  // The first field of a function up to 3.9 is its code, since then its globals
  // (Include/cpython/funcobject.h).
  RemoteAddress code_of(RemoteAddress function) {
    for (const uint64_t at : {uint64_t{0}, uint64_t{32}}) {
      const RemoteAddress code = field(function, at);
      if (is_plausible(code) && type_name(code) == "code") return code;
    }
    return {};
  }
  RemoteAddress dict_of(RemoteAddress function, RemoteAddress code) {
    return field(function, field(function, 0) == code ? 56 : 72);
  }

  void add_function(RemoteAddress function, const std::vector<std::string>& methods, const std::string& path,
                    size_t depth) {
    const RemoteAddress code = code_of(function);
    if (!code) return;
    const auto names = dict(dict_of(function, code));
    for (const char* of_class : {"view_class", "cls"}) {
      const RemoteAddress view = named(names, of_class);
      if (!is_plausible(view)) continue;
      // Django REST framework: which method of a ViewSet answers which verb.
      const auto actions = dict(named(names, "actions"));
      for (const DictItem& action : actions)
        add_method(view, text(action.value), upper(text(action.key)), path, depth);
      if (actions.empty()) add_class(view, path, depth);
      return;
    }
    auto known = codes_.find(code.value);
    if (known == codes_.end()) known = codes_.emplace(code.value, read_code(layout_, pages_, code)).first;
    if (known->second) {
      const Code& of = *known->second;
      // Tornado's and Falcon's, of every other verb.
      if (of.qualified_name.ends_with("_unimplemented_method") || of.file.ends_with("/falcon/responders.py"))
        return;
      for (const std::string& method : methods.empty() ? std::vector<std::string>{""} : methods) {
        if (routes_.size() < kMaxWebRoutes)
          routes_.insert({of.qualified_name, of.file, of.first_line, method, path});
      }
    }
    if (const RemoteAddress wrapped = named(names, "__wrapped__"); is_plausible(wrapped))
      add_handler(wrapped, methods, path, depth + 1);
  }

  void add_method(RemoteAddress type, std::string_view name, const std::string& verb, const std::string& path,
                  size_t depth) {
    for (size_t i = 0; i < kMostDeep && is_plausible(type) && !name.empty(); ++i) {
      const RemoteAddress found = named(dict(word(type + *layout_.type.tp_base + 8)), name);  // tp_dict
      if (is_plausible(found)) return add_handler(found, {verb}, path, depth + 1);
      type = word(type + *layout_.type.tp_base);
    }
  }
  void add_class(RemoteAddress type, const std::string& path, size_t depth) {
    for (const std::string_view verb : kVerbs) add_method(type, verb, upper(verb), path, depth);
  }

  void add_handler(RemoteAddress object, const std::vector<std::string>& methods, const std::string& path,
                   size_t depth = 0) {
    if (!is_plausible(object) || depth > kMostDeep || path.empty()) return;
    const std::string type = type_name(object);
    if (type == "function") return add_function(object, methods, path, depth);
    if (type == "method" || type == "functools.partial")  // of what, first
      return add_handler(field(object, 0), methods, path, depth + 1);
    if (derives(object, "type")) add_class(object, path, depth);
  }

  // --- Starlette and FastAPI ---

  // Of an application or a router.
  void add_starlette(RemoteAddress app, const std::string& prefix, size_t depth) {
    if (!is_plausible(app) || depth > kMostDeep) return;
    if (!prefix.empty()) mounted_.insert(app.value);
    const RemoteAddress router = attribute(app, "router");
    const RemoteAddress routes = attribute(is_plausible(router) ? router : app, "routes");
    for (const RemoteAddress route : items(routes)) add_starlette_route(route, prefix, depth);
  }

  void add_starlette_route(RemoteAddress route, const std::string& prefix, size_t depth) {
    if (!is_plausible(route)) return;
    const std::string type = type_name(route);
    if (type == "_IncludedRouter") {  // FastAPI 0.165
      const RemoteAddress context = attribute(route, "include_context");
      return add_starlette(attribute(route, "original_router"), prefix + text(attribute(context, "prefix")),
                           depth + 1);
    }
    if (type == "Mount" || type == "Host") {
      RemoteAddress app = attribute(route, "_base_app");
      if (!is_plausible(app)) app = attribute(route, "app");
      return add_starlette(app, prefix + text(attribute(route, "path")), depth + 1);
    }
    const RemoteAddress endpoint = attribute(route, "endpoint");
    const std::string path = text(attribute(route, "path"));
    if (path.empty() && prefix.empty()) return;
    auto methods = methods_of(attribute(route, "methods"));
    if (type.ends_with("WebSocketRoute")) methods = {"WEBSOCKET"};
    add_handler(endpoint, methods, prefix + path);
  }

  // --- Flask and Quart, aiohttp ---

  void add_flask(RemoteAddress app) {
    const auto functions = dict(attribute(app, "view_functions"));
    const RemoteAddress map = attribute(app, "url_map");
    std::vector<RemoteAddress> rules = items(attribute(map, "_rules"));  // up to Werkzeug 2.1
    for (const DictItem& of_endpoint : dict(attribute(map, "_rules_by_endpoint"))) {
      if (rules.size() >= WebObjects::kMostItems) break;
      for (const RemoteAddress rule : items(of_endpoint.value)) rules.push_back(rule);
    }
    for (const RemoteAddress rule : rules) {
      const std::string endpoint = text(attribute(rule, "endpoint"));
      if (endpoint.empty() || endpoint == "static" || endpoint.ends_with(".static")) continue;
      add_handler(named(functions, endpoint), methods_of(attribute(rule, "methods")),
                  text(attribute(rule, "rule")));
    }
  }

  void add_aiohttp(RemoteAddress app, size_t depth = 0) {
    if (depth > kMostDeep) return;
    for (const RemoteAddress resource : items(attribute(attribute(app, "_router"), "_resources"))) {
      if (!is_plausible(resource)) continue;
      // Its own resources have the prefix.
      if (const RemoteAddress inner = attribute(resource, "_app"); is_plausible(inner)) {
        add_aiohttp(inner, depth + 1);
        continue;
      }
      std::string path = text(attribute(resource, "_path"));
      if (path.empty()) path = text(attribute(resource, "_formatter"));
      const RemoteAddress routes = attribute(resource, "_routes");
      std::vector<RemoteAddress> all = items(routes);
      for (const DictItem& item : dict(routes)) all.push_back(item.value);
      const bool gets = std::any_of(all.begin(), all.end(), [&](RemoteAddress route) {
        return text(attribute(route, "_method")) == "GET";
      });
      for (const RemoteAddress route : all) {
        const std::string method = text(attribute(route, "_method"));
        if (method == "HEAD" && gets) continue;
        add_handler(attribute(route, "_handler"),
                    method == "*" || method.empty() ? std::vector<std::string>() : std::vector{method}, path);
      }
    }
  }

  // --- Tornado, Bottle ---

  // Of a router; its rules have a pattern of the path and a class of handlers, or another router.
  void add_tornado(RemoteAddress router, size_t depth = 0) {
    if (depth > kMostDeep) return;
    for (const RemoteAddress rule : items(attribute(router, "rules"))) {
      const RemoteAddress target = attribute(rule, "target");
      if (derives(target, "RuleRouter") || derives(target, "ReversibleRuleRouter")) {
        add_tornado(target, depth + 1);
        continue;
      }
      // `pattern`, the fifth field of a re.Pattern (struct PatternObject, Modules/_sre/sre.h).
      const RemoteAddress regex = attribute(attribute(rule, "matcher"), "regex");
      std::string path = is_plausible(regex) ? text(field(regex, 32)) : std::string();
      if (path.ends_with('$')) path.pop_back();  // which Tornado adds
      add_handler(target, {}, path);
    }
  }

  void add_bottle(RemoteAddress app) {
    for (const RemoteAddress route : items(attribute(app, "routes"))) {
      const std::string method = text(attribute(route, "method"));
      add_handler(attribute(route, "callback"),
                  method.empty() || method == "ANY" ? std::vector<std::string>() : std::vector{method},
                  text(attribute(route, "rule")));
    }
  }

  // --- Falcon, Sanic ---

  void add_falcon(const std::vector<RemoteAddress>& nodes, size_t depth = 0) {
    if (depth > kMostDeep) return;
    for (const RemoteAddress node : nodes) {
      const std::string path = text(attribute(node, "uri_template"));
      for (const DictItem& responder : dict(attribute(node, "method_map")))
        add_handler(responder.value, {text(responder.key)}, path);
      add_falcon(items(attribute(node, "children")), depth + 1);
    }
  }

  void add_sanic(RemoteAddress router) {
    for (const char* kind : {"static_routes", "dynamic_routes", "regex_routes"}) {
      for (const DictItem& group : dict(attribute(router, kind))) {
        for (const RemoteAddress route : items(attribute(group.value, "_routes")))
          add_handler(slot(route, "handler"), methods_of(slot(route, "methods")),
                      "/" + text(slot(route, "path")));
      }
    }
  }

  // --- all of these ---

  AppKind kind_of(RemoteAddress object) {
    const RemoteAddress type = word(object + *layout_.object.ob_type);
    if (!is_plausible(type)) return AppKind::none;
    const auto [at, fresh] = kinds_.try_emplace(type.value, AppKind::none);
    if (!fresh) return at->second;
    if (types_.derives(type, "Starlette")) {
      at->second = AppKind::starlette;
    } else if (types_.derives(type, "Flask") || types_.derives(type, "Quart")) {
      at->second = AppKind::flask;
    } else if (types_.derives(type, "Bottle")) {
      at->second = AppKind::bottle;
    } else if (types_.derives(type, "Sanic")) {
      at->second = AppKind::sanic;
    } else if (types_.derives(type, "App") && slot_of(type, "_router")) {
      at->second = AppKind::falcon;
    } else if (types_.derives(type, "AppStack")) {
      at->second = AppKind::bottles;
    } else if (types_.derives(type, "Application") && types_.derives(type, "ReversibleRouter")) {
      at->second = AppKind::tornado;
    } else if (types_.derives(type, "Application")) {
      at->second = AppKind::aiohttp;
    }
    return at->second;
  }

  using Applications = std::vector<std::pair<RemoteAddress, AppKind>>;

  // What has a word that is the address of the class may also be something else.
  bool is_application(RemoteAddress object, AppKind kind) {
    const auto has = [&](std::string_view name, std::string_view type) {
      return derives(attribute(object, name), type);
    };
    if (kind == AppKind::starlette) return has("router", "Router");
    if (kind == AppKind::flask) return has("url_map", "Map") && has("view_functions", "dict");
    if (kind == AppKind::tornado) return has("wildcard_router", "ReversibleRuleRouter");
    if (kind == AppKind::bottle) return has("routes", "list");
    if (kind == AppKind::sanic) return derives(slot(object, "router"), "BaseRouter");
    if (kind == AppKind::falcon) return derives(slot(object, "_router"), "CompiledRouter");
    return kind == AppKind::aiohttp && has("_router", "UrlDispatcher");
  }

  Applications search_applications() {
    constexpr std::pair<const char*, const char*> kClasses[] = {{"fastapi.applications", "FastAPI"},
                                                                {"starlette.applications", "Starlette"},
                                                                {"flask.app", "Flask"},
                                                                {"quart.app", "Quart"},
                                                                {"aiohttp.web_app", "Application"},
                                                                {"tornado.web", "Application"},
                                                                {"bottle", "Bottle"},
                                                                {"falcon.app", "App"},
                                                                {"falcon.asgi.app", "App"},
                                                                {"sanic.app", "Sanic"}};
    std::vector<uint64_t> classes;
    for (const auto& [module, name] : kClasses) {
      const auto names = objects_.names_of(modules_, module);
      const RemoteAddress found = names ? named(*names, name) : RemoteAddress();
      if (is_plausible(found)) classes.push_back(found.value);
    }
    Applications apps;
    if (classes.empty()) return apps;
    std::vector<uint64_t> chunk(kWordsAtOnce);
    for (HeapRange range : sources_.heap()) {
      while (range.start < range.end) {
        const size_t words = std::min<uint64_t>(chunk.size(), (range.end - range.start) / 8);
        if (words == 0) break;
        if (sources_.between) sources_.between();
        if (source_.read(range.start, std::as_writable_bytes(std::span(chunk).first(words)))) {
          for (size_t i = 0; i < words && apps.size() < kMostApplications; ++i) {
            if (std::find(classes.begin(), classes.end(), chunk[i]) == classes.end()) continue;
            const RemoteAddress object = range.start + 8 * i - *layout_.object.ob_type;
            const AppKind kind = kind_of(object);
            if (is_application(object, kind)) apps.emplace_back(object, kind);
          }
        }
        range.start = range.start + 8 * words;
      }
    }
    return apps;
  }

  void read_applications() {
    Applications apps;
    std::set<uint64_t> seen;
    size_t count = 0;
    for (const DictItem& module : modules_) {
      if (sources_.between && ++count % kModulesAtOnce == 0) sources_.between();
      if (!is_plausible(module.value) || !derives(module.value, "module")) continue;
      for (const DictItem& item : dict(word(module.value + *layout_.module.md_dict))) {
        if (!is_plausible(item.value) || apps.size() >= kMostApplications) continue;
        const AppKind kind = kind_of(item.value);
        if (kind == AppKind::none || !seen.insert(item.value.value).second) continue;
        if (kind != AppKind::bottles) {
          apps.emplace_back(item.value, kind);
          continue;
        }
        // Bottle's default applications.
        for (const RemoteAddress app : items(item.value)) {
          if (is_plausible(app) && kind_of(app) == AppKind::bottle && seen.insert(app.value).second)
            apps.emplace_back(app, AppKind::bottle);
        }
      }
    }
    if (apps.empty() && sources_.heap) apps = search_applications();
    for (const auto& [app, kind] : apps) {
      if (kind == AppKind::flask) add_flask(app);
      if (kind == AppKind::aiohttp) add_aiohttp(app);
      if (kind == AppKind::tornado) add_tornado(attribute(app, "default_router"));
      if (kind == AppKind::bottle) add_bottle(app);
      if (kind == AppKind::falcon) add_falcon(items(slot(slot(app, "_router"), "_roots")));
      if (kind == AppKind::sanic) add_sanic(slot(app, "router"));
    }
    // An application that is mounted in another one may be a global variable, too.
    std::set<WebRoute> others = std::exchange(routes_, {});
    std::vector<std::pair<uint64_t, std::set<WebRoute>>> by_app;
    for (const auto& [app, kind] : apps) {
      if (kind != AppKind::starlette) continue;
      add_starlette(app, "", 0);
      by_app.emplace_back(app.value, std::exchange(routes_, {}));
    }
    routes_ = std::move(others);
    for (auto& [app, found] : by_app) {
      if (!mounted_.contains(app)) routes_.merge(found);
    }
  }

  // --- Django ---

  void read_django() {
    const auto names = objects_.names_of(modules_, "django.conf");
    if (!names) return;
    const RemoteAddress settings = named(*names, "settings");
    RemoteAddress root = attribute(attribute(settings, "_wrapped"), "ROOT_URLCONF");
    if (!is_plausible(root)) root = attribute(settings, "ROOT_URLCONF");
    add_django(root, "/", 0);
  }

  std::string django_pattern(RemoteAddress of) {
    const RemoteAddress pattern = attribute(of, "pattern");
    const std::string route = text(attribute(pattern, "_route"));
    return route.empty() ? text(attribute(pattern, "_regex")) : route;
  }

  // A list of patterns, a module that has one, or the name of that module.
  void add_django(RemoteAddress patterns, const std::string& prefix, size_t depth) {
    if (!is_plausible(patterns) || depth > kMostDeep) return;
    RemoteAddress list = patterns;
    if (type_name(patterns) == "str") {
      const auto names = objects_.names_of(modules_, text(patterns));
      list = names ? named(*names, "urlpatterns") : RemoteAddress();
    } else if (derives(patterns, "module")) {
      list = named(dict(word(patterns + *layout_.module.md_dict)), "urlpatterns");
    }
    for (const RemoteAddress one : items(list)) {
      if (!is_plausible(one)) continue;
      const std::string path = prefix + django_pattern(one);
      if (derives(one, "URLResolver")) {
        add_django(attribute(one, "urlconf_name"), path, depth + 1);
      } else if (derives(one, "URLPattern")) {
        add_handler(attribute(one, "callback"), {}, path);
      }
    }
  }

  memory::RemoteMemory& source_;
  const RouteSources& sources_;
  std::vector<DictItem> modules_;
  std::set<WebRoute> routes_;
  std::set<uint64_t> mounted_;
  std::unordered_map<uint64_t, AppKind> kinds_;  // by type
  std::unordered_map<uint64_t, Read<Code>> codes_;
};

}  // namespace

std::vector<WebRoute> read_web_routes(const Interpreter& interpreter, memory::RemoteMemory& memory,
                                      const RouteSources& sources) {
  const Layout& layout = interpreter.layout;
  if (!layout.module.md_dict.present() || !layout.set.table.present() || !layout.dict.ma_keys.present())
    return {};
  std::set<WebRoute> all;
  ObjectReader objects(layout, memory);
  auto state = objects.pointer(interpreter.interpreters_head);
  for (size_t i = 0; state && *state && i < kInterpretersWithRoutes; ++i) {
    ReadingRoutes reading(layout, memory, sources);
    reading.read(*state);
    for (WebRoute& route : reading.take()) all.insert(std::move(route));
    state = objects.pointer(*state + *layout.interpreter.next);
  }
  return {all.begin(), all.end()};
}

}  // namespace phlox::python
