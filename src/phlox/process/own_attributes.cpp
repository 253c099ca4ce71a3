#include "phlox/process/own_attributes.h"

#include <fmt/format.h>

#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "phlox/base/encodings.h"
#include "phlox/base/text.h"

namespace phlox::process {
namespace {

// They may be anybody's.
constexpr size_t kLongestAttribute = 256, kLongestResource = 8192;

// opentelemetry/proto/{processcontext/v1development/process_context,resource/v1/resource,common/v1/common}.proto
// (1.11): ProcessContext.resource and .attributes, Resource.attributes, KeyValue.key and .value, and of
// AnyValue the strings, truths, whole numbers and others.
constexpr auto kMessage = protozero::pbf_wire_type::length_delimited;
constexpr protozero::pbf_tag_type kResourceOfContext = 1, kAttributesOfContext = 2, kAttributesOfResource = 1,
                                  kKey = 1, kValue = 2;
constexpr protozero::pbf_tag_type kString = 1, kTruth = 2, kWhole = 3, kReal = 4;

std::string attribute_text(protozero::data_view text) {
  return std::string(start_of({text.data(), text.size()}, kLongestAttribute));
}

std::string parse_value(protozero::pbf_reader value) {
  using protozero::pbf_wire_type;
  std::string text;
  while (value.next()) {
    const auto type = value.wire_type();
    if (value.tag() == kString && type == kMessage) {
      text = attribute_text(value.get_view());
    } else if (value.tag() == kTruth && type == pbf_wire_type::varint) {
      text = value.get_bool() ? "true" : "false";
    } else if (value.tag() == kWhole && type == pbf_wire_type::varint) {
      text = std::to_string(value.get_int64());
    } else if (value.tag() == kReal && type == pbf_wire_type::fixed64) {
      text = fmt::format("{}", value.get_double());
    } else {
      value.skip();
    }
  }
  return text;
}

std::pair<std::string, std::string> parse_attribute(protozero::pbf_reader attribute) {
  std::pair<std::string, std::string> out;
  while (attribute.next()) {
    if (attribute.wire_type() == kMessage && attribute.tag() == kKey) {
      out.first = attribute_text(attribute.get_view());
    } else if (attribute.wire_type() == kMessage && attribute.tag() == kValue) {
      out.second = parse_value(attribute.get_message());
    } else {
      attribute.skip();
    }
  }
  return out;
}

// threadlocal.schema_version (oteps/profiles/4947-thread-ctx.md): the first is that of drafts, the same
// format.
constexpr std::array<std::string_view, 2> kThreadSchemas = {"tlsdesc_v1_dev", "tls_v1"};

}  // namespace

std::string environment_attributes(std::string_view environment) {
  constexpr std::string_view kName = "OTEL_SERVICE_NAME=", kAttributes = "OTEL_RESOURCE_ATTRIBUTES=";
  std::string_view name, attributes;
  while (!environment.empty()) {
    const std::string_view one = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(environment.size(), one.size() + 1));
    if (one.starts_with(kName)) name = one.substr(kName.size());
    if (one.starts_with(kAttributes)) attributes = one.substr(kAttributes.size());
  }
  std::string text;
  if (!name.empty()) text = "service.name=" + percent_encoded(start_of(name, kLongestAttribute));
  attributes = start_of(attributes, kLongestResource);
  if (!attributes.empty()) text += (text.empty() ? "" : ",") + std::string(attributes);
  return text;
}

std::string context_attributes(std::string_view message) {
  std::string text;
  try {
    protozero::pbf_reader context(message.data(), message.size());
    while (context.next(kResourceOfContext, kMessage)) {
      protozero::pbf_reader resource = context.get_message();
      while (resource.next(kAttributesOfResource, kMessage)) {
        const auto [key, value] = parse_attribute(resource.get_message());
        if (key.empty() || value.empty() || key.starts_with("telemetry.") || key.starts_with("process."))
          continue;
        if (text.size() > kLongestResource) return text;
        text += (text.empty() ? "" : ",") + percent_encoded(key) + "=" + percent_encoded(value);
      }
    }
  } catch (const protozero::exception&) {
    return {};
  }
  return text;
}

bool publishes_traces(std::string_view message) {
  bool does = false;
  try {
    protozero::pbf_reader context(message.data(), message.size());
    while (context.next(kAttributesOfContext, kMessage)) {
      const auto [key, value] = parse_attribute(context.get_message());
      if (key == "threadlocal.schema_version")
        does = std::find(kThreadSchemas.begin(), kThreadSchemas.end(), value) != kThreadSchemas.end();
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return does;
}

}  // namespace phlox::process
