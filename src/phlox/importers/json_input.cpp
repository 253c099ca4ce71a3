#include "phlox/importers/json_input.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace phlox::importers {
namespace {

constexpr size_t kLargest = size_t{1} << 30;

}  // namespace

Result<rapidjson::Document> parse_json(Input& input) {
  const auto all = read_all(input, kLargest);
  if (!all) return fail(ErrorKind::input, "more than 1 GiB of JSON is not read");
  rapidjson::Document document;
  // Without recursion: how deep it goes is the file's choice.
  document.Parse<rapidjson::kParseIterativeFlag>(all->data(), all->size());
  if (!document.HasParseError()) return document;
  return fail(ErrorKind::input, fmt::format("no JSON from byte {} on: {}", document.GetErrorOffset(),
                                            rapidjson::GetParseError_En(document.GetParseError())));
}

const Json* member(const Json* object, const char* name) {
  if (object == nullptr || !object->IsObject()) return nullptr;
  const auto found = object->FindMember(name);
  return found == object->MemberEnd() ? nullptr : &found->value;
}

const Json* element(const Json* array, uint64_t index) {
  if (array == nullptr || !array->IsArray() || index >= array->Size()) return nullptr;
  return &(*array)[static_cast<rapidjson::SizeType>(index)];
}

size_t length(const Json* array) {
  return array != nullptr && array->IsArray() ? array->Size() : 0;
}

std::string_view text(const Json* value) {
  if (value == nullptr || !value->IsString()) return {};
  return {value->GetString(), value->GetStringLength()};
}

std::optional<double> number(const Json* value) {
  if (value == nullptr || !value->IsNumber() || !std::isfinite(value->GetDouble())) return std::nullopt;
  return value->GetDouble();
}

std::optional<uint64_t> index_of(const Json* value) {
  if (value == nullptr || !value->IsUint64()) return std::nullopt;
  return value->GetUint64();
}

int32_t line(const Json* value) {
  const auto found = number(value);
  if (!found || *found < 0 || *found > std::numeric_limits<int32_t>::max()) return 0;
  return static_cast<int32_t>(*found);
}

bool is_json_with(std::span<const std::byte> head, std::initializer_list<std::string_view> keys) {
  const std::string_view all(reinterpret_cast<const char*>(head.data()), head.size());
  const size_t start = all.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start == std::string_view::npos || all[start] != '{') return false;
  return std::all_of(keys.begin(), keys.end(), [&](std::string_view key) {
    return all.find(fmt::format("\"{}\"", key)) != std::string_view::npos;
  });
}

}  // namespace phlox::importers
