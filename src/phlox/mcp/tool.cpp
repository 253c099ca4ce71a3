#include "phlox/mcp/tool.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/nearest.h"
#include "phlox/base/text.h"

namespace phlox::mcp {
namespace {

constexpr size_t kLongestText = 100'000;  // a query; SQLite's own limit is the same
constexpr size_t kMostTexts = 200;        // files of a diff
constexpr size_t kLongestNameShown = 60;

using Kind = Parameter::Kind;

Json range(const Parameter& parameter, Json schema) {
  if (parameter.most > parameter.least) {
    schema.set("minimum", Json::real(parameter.least));
    schema.set("maximum", Json::real(parameter.most));
  }
  if (parameter.otherwise) schema.set("default", Json::real(*parameter.otherwise));
  return schema;
}

Json schema_of(const Parameter& parameter) {
  Json schema = Json::object();
  switch (parameter.kind) {
    case Kind::text:
      schema.set("type", "string");
      if (!parameter.choices.empty()) schema.set("enum", Json::texts(parameter.choices));
      break;
    case Kind::texts:
      schema.set("type", "array");
      schema.set("items", Json::object({{"type", "string"}}));
      schema.set("minItems", Json::integer(1));
      schema.set("maxItems", Json::integer(kMostTexts));
      break;
    case Kind::integer:
      schema = range(parameter, Json::object({{"type", "integer"}}));
      break;
    case Kind::number:
      schema = range(parameter, Json::object({{"type", "number"}}));
      break;
    case Kind::flag:
      schema.set("type", "boolean");
      break;
  }
  schema.set("description", parameter.description);
  return schema;
}

// Of every tool's answer: what was done, and a refusal.
Json answer_schema(const Tool& tool) {
  const auto text = [](const char* what) {
    return Json::object({{"type", "string"}, {"description", what}});
  };
  const auto texts = [](const char* what) {
    return Json::object(
        {{"type", "array"}, {"items", Json::object({{"type", "string"}})}, {"description", what}});
  };
  Json members = Json::object({{"command", text("what phlox did, as a command line")},
                               {"result", tool.result},
                               {"cut", texts("what was left out to keep the answer small")},
                               {"warnings", texts("what phlox warns of")},
                               {"notes", texts("what else it said")},
                               {"error", text("of a refusal: what failed and why")},
                               {"hint", text("of a refusal: what to do next")},
                               {"kind", text("of a refusal: its kind")}});
  return Json::object({{"type", "object"}, {"properties", std::move(members)}});
}

tl::unexpected<Error> wrong(const Parameter& parameter, std::string_view what) {
  return fail(ErrorKind::usage, fmt::format("{}: {}", parameter.name, what), parameter.description);
}

Result<void> check_text(const Parameter& parameter, const Json& value) {
  if (!value.is(Json::Kind::string)) return wrong(parameter, "must be a string");
  const std::string& text = value.text();
  if (text.empty()) return wrong(parameter, "is empty");
  if (text.find('\0') != std::string::npos) return wrong(parameter, "has a zero byte in it");
  if (text.size() > kLongestText)
    return wrong(parameter, fmt::format("is longer than {} bytes", kLongestText));
  const auto& choices = parameter.choices;
  if (choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
  return wrong(parameter, fmt::format("must be one of {}", fmt::join(choices, ", ")));
}

Result<void> check_range(const Parameter& parameter, std::optional<double> value) {
  if (parameter.most <= parameter.least || (value && *value >= parameter.least && *value <= parameter.most))
    return {};
  return wrong(parameter, fmt::format("must be from {} to {}", parameter.least, parameter.most));
}

Result<void> check_value(const Parameter& parameter, const Json& value) {
  switch (parameter.kind) {
    case Kind::text:
      return check_text(parameter, value);
    case Kind::texts:
      if (!value.is(Json::Kind::array) || value.items().empty())
        return wrong(parameter, "must be an array of strings");
      if (value.items().size() > kMostTexts)
        return wrong(parameter, fmt::format("has more than {}", kMostTexts));
      for (const Json& item : value.items()) {
        if (auto fine = check_text(parameter, item); !fine) return fine;
      }
      return {};
    case Kind::integer:
      if (!value.as_integer()) return wrong(parameter, "must be an integer");
      return check_range(parameter, static_cast<double>(*value.as_integer()));
    case Kind::number:
      if (!value.as_real()) return wrong(parameter, "must be a number");
      return check_range(parameter, value.as_real());
    case Kind::flag:
      if (!value.is(Json::Kind::truth)) return wrong(parameter, "must be true or false");
      return {};
  }
  return {};
}

}  // namespace

Json describe(const Tool& tool, bool structured) {
  Json properties = Json::object(), required = Json::array();
  for (const Parameter& parameter : tool.parameters) {
    properties.set(parameter.name, schema_of(parameter));
    if (parameter.required) required.add(parameter.name);
  }
  Json input = Json::object({{"type", "object"}, {"properties", std::move(properties)}});
  if (!required.items().empty()) input.set("required", std::move(required));
  input.set("additionalProperties", Json::truth(false));
  Json json = Json::object({{"name", tool.name}});
  if (structured) json.set("title", tool.title);
  json.set("description", tool.description);
  json.set("inputSchema", std::move(input));
  if (structured) json.set("outputSchema", answer_schema(tool));
  json.set("annotations", Json::object({{"title", tool.title},
                                        {"readOnlyHint", Json::truth(tool.read_only)},
                                        {"destructiveHint", Json::truth(false)},
                                        {"idempotentHint", Json::truth(tool.read_only)},
                                        {"openWorldHint", Json::truth(false)}}));
  return json;
}

Result<void> check_arguments(const Tool& tool, const Json& arguments) {
  const auto find = [&](const std::string& name) {
    return std::find_if(tool.parameters.begin(), tool.parameters.end(),
                        [&](const Parameter& parameter) { return parameter.name == name; });
  };
  std::vector<std::string> names;
  for (const Parameter& parameter : tool.parameters) names.push_back(parameter.name);
  for (size_t i = 0; i < arguments.keys().size(); ++i) {
    const auto parameter = find(arguments.keys()[i]);
    if (parameter == tool.parameters.end()) {
      const std::string name = shortened(arguments.keys()[i], kLongestNameShown);
      const auto alike = nearest(name, names, 2);
      return fail(ErrorKind::usage, fmt::format("{} has no parameter '{}'", tool.name, name),
                  alike.empty() ? fmt::format("its parameters: {}", fmt::join(names, ", "))
                                : fmt::format("did you mean {}?", fmt::join(alike, " or ")));
    }
    if (auto fine = check_value(*parameter, arguments.items()[i]); !fine) return fine;
  }
  for (const Parameter& parameter : tool.parameters) {
    if (parameter.required && arguments.find(parameter.name) == nullptr)
      return fail(ErrorKind::usage, fmt::format("{} is missing", parameter.name), parameter.description);
  }
  return {};
}

}  // namespace phlox::mcp
