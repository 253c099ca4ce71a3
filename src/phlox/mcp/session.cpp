#include "phlox/mcp/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace phlox::mcp {
namespace {

// Those that begin with `initialize`, the newest first.
constexpr std::array<std::string_view, 4> kAgreed = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
// Those whose requests say it themselves.
constexpr std::array<std::string_view, 1> kModern = {"2026-07-28"};
// From this one on an answer may be structured.
constexpr std::string_view kStructuredSince = "2025-06-18";
// From this one on a line is one message.
constexpr std::string_view kNoBatchesSince = "2025-06-18";

constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr std::string_view kServerKey = "io.modelcontextprotocol/serverInfo";

// JSON-RPC 2.0, section 5.1; the last one is MCP's.
constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601,
              kInvalidParams = -32602, kUnsupportedVersion = -32022;

constexpr size_t kMostInBatch = 50;
// Tools do not change while the program runs.
constexpr int64_t kFreshMs = 3'600'000;

bool is_id(const Json* id) {
  return id != nullptr && (id->is(Json::Kind::string) || id->is(Json::Kind::number));
}

template <size_t N>
bool is_among(const std::array<std::string_view, N>& versions, std::string_view version) {
  return std::find(versions.begin(), versions.end(), version) != versions.end();
}

const Json* member(const Json* object, std::string_view key) {
  return object == nullptr ? nullptr : object->find(key);
}

Json text_block(std::string text) {
  return Json::object({{"type", "text"}, {"text", std::move(text)}});
}

Json capabilities() {
  return Json::object({{"tools", Json::object()}});
}

}  // namespace

Answer refusal(const Error& error, std::string_view kind) {
  Answer answer;
  answer.is_error = true;
  answer.text = error.message + (error.hint.empty() ? "" : "\nhint: " + error.hint);
  answer.structured = Json::object({{"error", error.message}, {"hint", error.hint}, {"kind", kind}});
  return answer;
}

Session::Session(std::string version, std::string instructions, std::vector<Tool> tools, Host& host)
    : version_(std::move(version)),
      instructions_(std::move(instructions)),
      tools_(std::move(tools)),
      host_(host) {}

void Session::take(std::string_view message) {
  const auto parsed = parse_json(message);
  if (!parsed) return reply_error({}, kParseError, parsed.error().message);
  if (parsed->is(Json::Kind::array)) return take_batch(*parsed);
  take_one(*parsed, nullptr);
}

void Session::take_too_long(size_t longest) {
  reply_error({}, kParseError, fmt::format("a message of more than {} bytes", longest));
}

void Session::take_batch(const Json& messages) {
  if (agreed_ >= kNoBatchesSince)
    return reply_error({}, kInvalidRequest, fmt::format("version {} has no batches", agreed_));
  if (messages.items().empty()) return reply_error({}, kInvalidRequest, "an empty batch");
  if (messages.items().size() > kMostInBatch)
    return reply_error({}, kInvalidRequest, fmt::format("a batch of more than {} messages", kMostInBatch));
  auto batch = std::make_shared<Batch>();
  // One more, so that it is not complete before all are taken.
  batch->left = messages.items().size() + 1;
  for (const Json& message : messages.items()) take_one(message, batch);
  settle(*batch, {});
}

void Session::settle(Batch& batch, const std::string& answer) {
  if (!answer.empty()) batch.answers += (batch.answers.empty() ? "" : ",") + answer;
  if (--batch.left == 0 && !batch.answers.empty()) host_.send("[" + batch.answers + "]");
}

void Session::take_one(const Json& message, std::shared_ptr<Batch> batch) {
  Request request;
  request.batch = std::move(batch);
  const Json* const id = message.find("id");
  if (is_id(id)) request.id = *id;
  const Json* const version = message.find("jsonrpc");
  const Json* const method = message.find("method");
  const Json* const params = message.find("params");
  if (version == nullptr || !version->is(Json::Kind::string) || version->text() != "2.0")
    return reply_error(request, kInvalidRequest, "no message of JSON-RPC 2.0");
  // An answer, though nothing was asked.
  if (method == nullptr && (message.find("result") != nullptr || message.find("error") != nullptr))
    return ignore(request);
  if (method == nullptr || !method->is(Json::Kind::string))
    return reply_error(request, kInvalidRequest, "no method");
  if (id != nullptr && !is_id(id))
    return reply_error(request, kInvalidRequest, "the id is no string or number");
  if (params != nullptr && !params->is(Json::Kind::object)) {
    if (id == nullptr) return ignore(request);
    return reply_error(request, kInvalidParams, "params is no object");
  }
  if (id == nullptr) {
    take_notification(method->text(), params);
    return ignore(request);
  }
  const bool in_use = std::any_of(calls_.begin(), calls_.end(),
                                  [&](const auto& call) { return call.second.request.id == request.id; });
  if (in_use)
    return reply_error(request, kInvalidRequest, "the id is that of a request that is not answered yet");
  take_request(request, method->text(), params);
}

void Session::ignore(const Request& request) {
  if (request.batch) settle(*request.batch, {});
}

void Session::take_notification(const std::string& method, const Json* params) {
  if (method != "notifications/cancelled") return;  // initialized: nothing waits for it
  const Json* const id = member(params, "requestId");
  if (!is_id(id)) return;
  const auto found = std::find_if(calls_.begin(), calls_.end(),
                                  [&](const auto& call) { return call.second.request.id == *id; });
  if (found == calls_.end()) return;
  const uint64_t number = found->first;
  ignore(found->second.request);
  calls_.erase(found);
  host_.cancel(number);
}

bool Session::refuse_version(Request& request, const std::string& method, const Json* params) {
  const Json* const meta = member(params, "_meta");
  const Json* const version = member(meta, kVersionKey);
  if (version == nullptr) {
    if (method == "initialize" || method == "ping" || (!agreed_.empty() && method != "server/discover"))
      return false;
    reply_error(request, kInvalidParams,
                fmt::format("initialize first, or say the version in _meta: {}", kVersionKey));
    return true;
  }
  request.is_modern = true;
  if (!version->is(Json::Kind::string)) {
    reply_error(request, kInvalidParams, fmt::format("{} is no string", kVersionKey));
    return true;
  }
  if (!is_among(kModern, version->text())) {
    std::vector<std::string> supported(kModern.begin(), kModern.end());
    supported.insert(supported.end(), kAgreed.begin(), kAgreed.end());
    reply_error(request, kUnsupportedVersion, "Unsupported protocol version",
                Json::object({{"supported", Json::texts(supported)}, {"requested", version->text()}}));
    return true;
  }
  const Json* const can = member(meta, kCapabilitiesKey);
  if (can != nullptr && can->is(Json::Kind::object)) return false;
  reply_error(request, kInvalidParams, fmt::format("_meta has no {}", kCapabilitiesKey));
  return true;
}

void Session::take_request(Request request, const std::string& method, const Json* params) {
  if (refuse_version(request, method, params)) return;
  if (method == "initialize" && !request.is_modern) return initialize(request, params);
  if (method == "ping" && !request.is_modern) return reply(request, Json::object());
  if (method == "tools/call") return call_tool(request, params);
  if (method == "tools/list") {
    Json tools = Json::array();
    for (const Tool& tool : tools_) tools.add(describe(tool, has_structured(request)));
    Json result = Json::object({{"tools", std::move(tools)}});
    if (request.is_modern) {
      result.set("ttlMs", Json::integer(kFreshMs));
      result.set("cacheScope", "private");
    }
    return reply(request, std::move(result));
  }
  if (method == "server/discover" && request.is_modern) {
    return reply(request, Json::object({{"supportedVersions", Json::texts({kModern.begin(), kModern.end()})},
                                        {"capabilities", capabilities()},
                                        {"instructions", instructions_},
                                        {"ttlMs", Json::integer(kFreshMs)},
                                        {"cacheScope", "private"}}));
  }
  constexpr size_t kLongestShown = 100;
  reply_error(request, kMethodNotFound, fmt::format("no method '{}' here", method.substr(0, kLongestShown)));
}

void Session::initialize(const Request& request, const Json* params) {
  if (request.batch) return reply_error(request, kInvalidRequest, "initialize is alone in its line");
  const Json* const wanted = member(params, "protocolVersion");
  if (wanted == nullptr || !wanted->is(Json::Kind::string))
    return reply_error(request, kInvalidParams, "no protocolVersion");
  agreed_ = is_among(kAgreed, wanted->text()) ? wanted->text() : std::string(kAgreed.front());
  reply(request, Json::object({{"protocolVersion", agreed_},
                               {"capabilities", capabilities()},
                               {"serverInfo", server()},
                               {"instructions", instructions_}}));
}

void Session::call_tool(const Request& request, const Json* params) {
  const Json* const name = member(params, "name");
  if (name == nullptr || !name->is(Json::Kind::string))
    return reply_error(request, kInvalidParams, "tools/call without the name of a tool");
  const auto tool =
      std::find_if(tools_.begin(), tools_.end(), [&](const Tool& one) { return one.name == name->text(); });
  if (tool == tools_.end()) {
    std::vector<std::string> names;
    for (const Tool& one : tools_) names.push_back(one.name);
    return reply_error(request, kInvalidParams,
                       fmt::format("no such tool; there are {}", fmt::join(names, ", ")));
  }
  const Json* const given = member(params, "arguments");
  if (given != nullptr && !given->is(Json::Kind::object) && !given->is(Json::Kind::null))
    return reply_error(request, kInvalidParams, "arguments is no object");
  const Json arguments = given != nullptr && given->is(Json::Kind::object) ? *given : Json::object();
  const uint64_t number = ++last_call_;
  Call call{request, {}};
  if (const Json* const token = member(member(params, "_meta"), "progressToken"); is_id(token))
    call.progress_token = *token;
  calls_.emplace(number, std::move(call));
  // A model can mend these, so they are an answer of the tool.
  if (const auto fine = check_arguments(*tool, arguments); !fine)
    return answer(number, refusal(fine.error(), "usage"));
  host_.call(number, *tool, arguments);
}

void Session::answer(uint64_t number, const Answer& answer) {
  const auto found = calls_.find(number);
  if (found == calls_.end()) return;  // cancelled
  const Request request = found->second.request;
  calls_.erase(found);
  Json content = Json::array({text_block(answer.text)});
  Json result = Json::object();
  if (has_structured(request)) {
    result.set("structuredContent", answer.structured);
  } else {
    content.add(text_block(write_json(answer.structured)));
  }
  result.set("content", std::move(content));
  result.set("isError", Json::truth(answer.is_error));
  reply(request, std::move(result));
}

void Session::report_progress(uint64_t number, double progress, std::optional<double> total,
                              const std::string& message) {
  const auto found = calls_.find(number);
  if (found == calls_.end() || !found->second.progress_token) return;
  Json params =
      Json::object({{"progressToken", *found->second.progress_token}, {"progress", Json::real(progress)}});
  if (total) params.set("total", Json::real(*total));
  params.set("message", message);
  host_.send(write_json(Json::object(
      {{"jsonrpc", "2.0"}, {"method", "notifications/progress"}, {"params", std::move(params)}})));
}

void Session::reply(const Request& request, Json result) {
  if (request.is_modern) {
    result.set("resultType", "complete");
    result.set("_meta", Json::object({{std::string(kServerKey), server()}}));
  }
  send(request, Json::object({{"jsonrpc", "2.0"}, {"id", request.id}, {"result", std::move(result)}}));
}

void Session::reply_error(const Request& request, int code, std::string_view message, Json data) {
  Json error = Json::object({{"code", Json::integer(code)}, {"message", message}});
  if (!data.is(Json::Kind::null)) error.set("data", std::move(data));
  send(request, Json::object({{"jsonrpc", "2.0"}, {"id", request.id}, {"error", std::move(error)}}));
}

void Session::send(const Request& request, const Json& message) {
  const std::string line = write_json(message);
  if (request.batch) return settle(*request.batch, line);
  host_.send(line);
}

bool Session::has_structured(const Request& request) const {
  return request.is_modern || agreed_ >= kStructuredSince;
}

Json Session::server() const {
  return Json::object({{"name", "phlox"}, {"title", "Phlox"}, {"version", version_}});
}

}  // namespace phlox::mcp
