#include "phlox/importers/json_input.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace phlox::importers {
namespace {

constexpr size_t kLargest = size_t{1} << 30;
// Names are short. One of a gigabyte, packed into a megabyte, is meant to cost memory.
constexpr size_t kLongestJsonText = size_t{16} << 20;
constexpr size_t kJsonPiece = size_t{1} << 20;

// Looks for texts that are too long while the bytes come in.
class TextLengths {
 public:
  // Whether all are short enough so far.
  bool take(std::string_view bytes) {
    for (const char c : bytes) {
      if (!within_) {
        within_ = c == '"';
        length_ = 0;
      } else if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        within_ = false;
      }
      if (++length_ > kLongestJsonText && within_) return false;
    }
    return true;
  }

 private:
  bool within_ = false, escaped_ = false;
  size_t length_ = 0;
};

Result<std::string> read_checked(Input& input) {
  std::string bytes;
  TextLengths lengths;
  // Its end is marked by a byte more.
  bytes.reserve(std::min<uint64_t>(input.size().value_or(0), kLargest) + 1);
  while (bytes.size() <= kLargest) {
    const size_t have = bytes.size();
    const size_t asked = input.room_for(have, kJsonPiece);
    bytes.resize(have + asked);
    bytes.resize(have + input.read_at(have, std::as_writable_bytes(std::span(bytes)).subspan(have)));
    if (!lengths.take(std::string_view(bytes).substr(have)))
      return fail(ErrorKind::input, "a text of more than 16 MiB in JSON is not read",
                  "write the file again with shorter names");
    if (bytes.size() < have + asked || asked == 0) return bytes;
  }
  return fail(ErrorKind::input, "more than 1 GiB of JSON is not read",
              "record a shorter time, or fewer samples a second");
}

}  // namespace

Result<JsonFile> parse_json(Input& input) {
  auto bytes = read_checked(input);
  if (!bytes) return fail(bytes);
  JsonFile file;
  file.bytes_ = std::make_unique<std::string>(*std::move(bytes));
  char* text = file.bytes_->data();
  if (file.bytes_->starts_with(kByteOrderMark)) text += kByteOrderMark.size();
  // Without recursion: how deep it goes is the file's choice.
  file.root_.ParseInsitu<rapidjson::kParseIterativeFlag>(text);
  if (!file.root_.HasParseError()) return file;
  return fail(ErrorKind::input, fmt::format("no JSON from byte {} on: {}", file.root_.GetErrorOffset(),
                                            rapidjson::GetParseError_En(file.root_.GetParseError())));
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

std::optional<Number> number(const Json* value) {
  if (value == nullptr || !value->IsNumber()) return std::nullopt;
  if (value->IsUint64()) return static_cast<Number>(value->GetUint64());
  if (value->IsInt64()) return static_cast<Number>(value->GetInt64());
  if (!std::isfinite(value->GetDouble())) return std::nullopt;
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
