#include "phlox/importers/json_input.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace phlox::importers {
namespace {

constexpr size_t kLargest = size_t{1} << 30;
// Names are short. A name of a gigabyte, compressed to a megabyte, is meant to exhaust memory.
constexpr size_t kLongestJsonText = size_t{16} << 20;
constexpr size_t kJsonPiece = size_t{1} << 20;

// A value takes 16 bytes in memory, regardless of its size in the file.
constexpr size_t kMostJsonValues = size_t{1} << 27;
constexpr size_t kDeepestJson = 100'000;
// Blanks kept in a row: a gigabyte of them is meant to exhaust memory too.
constexpr size_t kMostBlanks = 1024;

// Finds what would take too much memory while the bytes arrive.
class JsonLimits {
 public:
  // Moves the remaining bytes to the front and returns their number. None: a limit is exceeded; why() says
  // which.
  std::optional<size_t> take(std::span<char> bytes) {
    size_t kept = 0;
    for (const char c : bytes) {
      if (within_ ? !take_text(c) : !take_plain(c)) return std::nullopt;
      if (blanks_ <= kMostBlanks) bytes[kept++] = c;
    }
    return kept;
  }
  tl::unexpected<Error> why() const {
    constexpr const char* kSmaller = "record a shorter time, or fewer samples a second";
    if (within_)
      return fail(ErrorKind::input, "a text of more than 16 MiB in JSON is not read",
                  "write the file again with shorter names");
    if (depth_ > kDeepestJson)
      return fail(ErrorKind::input,
                  fmt::format("JSON that is nested more than {} times is not read", kDeepestJson));
    return fail(ErrorKind::input, fmt::format("JSON of more than {} values is not read", kMostJsonValues),
                kSmaller);
  }

 private:
  bool take_text(char c) {
    if (!escaped_ && c == '"') within_ = false;
    escaped_ = !escaped_ && c == '\\';
    return ++length_ <= kLongestJsonText || !within_;
  }
  bool take_plain(char c) {
    const bool is_blank = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    blanks_ = is_blank ? blanks_ + 1 : 0;
    if (is_blank) return true;
    if (c == '"') {
      within_ = true;
      length_ = 0;
    } else if (c == '[' || c == '{') {
      return ++depth_ <= kDeepestJson;
    } else if (c == ']' || c == '}') {
      depth_ -= depth_ > 0;
    } else if (c == ',' || c == ':') {
      return ++values_ <= kMostJsonValues;
    }
    return true;
  }

  bool within_ = false, escaped_ = false;
  size_t length_ = 0, blanks_ = 0, depth_ = 0, values_ = 0;
};

// Collects the keys of the outermost object while the bytes arrive.
class OuterKeys {
 public:
  // False if it is no object, or has ended.
  bool take(std::string_view bytes) {
    for (const char c : bytes) {
      if (within_ ? !take_text(c) : !take_plain(c)) return false;
    }
    return true;
  }
  std::vector<std::string>& keys() { return keys_; }

 private:
  static constexpr size_t kMostKeys = 64, kLongestKey = 64;

  bool take_text(char c) {
    if (!escaped_ && c == '"') {
      within_ = false;
      if (is_key_) keys_.push_back(text_);
      is_key_ = false;
      return keys_.size() < kMostKeys;
    }
    escaped_ = !escaped_ && c == '\\';
    if (is_key_ && text_.size() < kLongestKey) text_ += c;
    return true;
  }
  bool take_plain(char c) {
    if (c == '"') {
      within_ = true;
      is_key_ = depth_ == 1 && before_value_;
      text_.clear();
      return depth_ > 0;
    }
    if (c == '{' || c == '[') {
      before_value_ = c == '{';
      return ++depth_ > 1 || c == '{';
    }
    if (c == '}' || c == ']') return --depth_ > 0;
    if (depth_ == 1 && (c == ':' || c == ',')) before_value_ = c == ',';
    return true;
  }

  std::vector<std::string> keys_;
  std::string text_;
  size_t depth_ = 0;
  bool within_ = false, escaped_ = false, is_key_ = false, before_value_ = false;
};

Result<std::string> read_checked(Input& input) {
  std::string bytes;
  JsonLimits limits;
  uint64_t offset = 0;
  // One byte more for the end mark.
  bytes.reserve(std::min<uint64_t>(input.size().value_or(0), kLargest) + 1);
  while (offset <= kLargest) {
    const size_t have = bytes.size();
    const size_t asked = input.room_for(offset, kJsonPiece);
    bytes.resize(have + asked);
    const auto piece = std::span(bytes).subspan(have);
    const size_t got = input.read_at(offset, std::as_writable_bytes(piece));
    const auto kept = limits.take(piece.first(got));
    if (!kept) return limits.why();
    bytes.resize(have + *kept);
    offset += got;
    if (got < asked || asked == 0) return bytes;
  }
  return fail(ErrorKind::input, "more than 1 GiB of JSON is not read",
              "record a shorter time, or fewer samples a second");
}

}  // namespace

Result<JsonFile> parse_json(Input& input) {
  auto bytes = read_checked(input);
  if (!bytes) return fail(bytes);
  if (input.lost()) return no_room_to_read_again();
  JsonFile file;
  file.bytes_ = std::make_unique<std::string>(*std::move(bytes));
  char* text = file.bytes_->data();
  if (file.bytes_->starts_with(kByteOrderMark)) text += kByteOrderMark.size();
  // Without recursion: the file decides how deep it nests.
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

uint64_t WholeWeights::take(Number weight) {
  constexpr Number kMostWhole = 18446744073709551615.0L;  // the largest uint64_t
  const Number exact = weight + rest_;
  const Number whole = std::clamp(std::round(exact), Number{0}, kMostWhole);
  rest_ = std::clamp(exact - whole, Number{-1}, Number{1});
  return static_cast<uint64_t>(whole);
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

std::vector<std::string> outer_keys(Input& input) {
  keep_all(input);
  OuterKeys outer;
  std::string piece;
  uint64_t offset = 0;
  do {
    piece.resize(input.room_for(offset, kJsonPiece));
    piece.resize(input.read_at(offset, std::as_writable_bytes(std::span(piece))));
    std::string_view bytes = piece;
    if (offset == 0 && bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
    offset += piece.size();
    if (!outer.take(bytes)) break;
  } while (!piece.empty() && offset <= kLargest);
  return std::move(outer.keys());
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
