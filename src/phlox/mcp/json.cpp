#include "phlox/mcp/json.h"

#include <fmt/format.h>
#include <rapidjson/encodedstream.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cmath>

#include "phlox/base/text.h"
#include "phlox/base/utf8.h"

namespace phlox::mcp {
namespace {

// Builds the value without recursion: what is open is on a stack.
class Builder {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}
  Json take() { return std::move(root_); }
  const char* broken() const { return broken_; }

  bool Null() { return put({}); }
  bool Bool(bool value) { return put(Json::truth(value)); }
  // All numbers come as they were written.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(int64_t) { return false; }
  bool Uint64(uint64_t) { return false; }
  bool Double(double) { return false; }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    return put(Json::number(std::string(text, size)));
  }
  bool String(const char* text, rapidjson::SizeType size, bool) { return put(std::string(text, size)); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    keys_.back().assign(text, size);
    return true;
  }
  bool StartObject() { return open(Json::object()); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool StartArray() { return open(Json::array()); }
  bool EndArray(rapidjson::SizeType) { return close(); }

 private:
  bool open(Json value) {
    if (open_.size() == limits_.depth) {
      broken_ = "nested too deeply";
      return false;
    }
    if (!count()) return false;
    open_.push_back(std::move(value));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Json value = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    attach(std::move(value));
    return true;
  }
  bool put(Json value) {
    if (!count()) return false;
    attach(std::move(value));
    return true;
  }
  bool count() {
    if (++values_ <= limits_.values) return true;
    broken_ = "too many values";
    return false;
  }
  void attach(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is(Json::Kind::array)) {
      open_.back().add(std::move(value));
    } else {
      open_.back().set(keys_.back(), std::move(value));
    }
  }

  JsonLimits limits_;
  Json root_;
  std::vector<Json> open_;
  std::vector<std::string> keys_;  // of the member that is read, one for each open value
  size_t values_ = 0;
  const char* broken_ = nullptr;
};

using Writer = rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::ASCII<>>;

void write_text(Writer& out, const std::string& text) {
  const std::string valid = valid_utf8(text);
  out.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

// Recursion: what is written was built by us, or was parsed with a cap on its depth.
void write_value(Writer& out, const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null:
      out.Null();
      break;
    case Json::Kind::truth:
      out.Bool(value.is_true());
      break;
    case Json::Kind::number:
      out.RawValue(value.text().data(), value.text().size(), rapidjson::kNumberType);
      break;
    case Json::Kind::string:
      write_text(out, value.text());
      break;
    case Json::Kind::array:
      out.StartArray();
      for (const Json& item : value.items()) write_value(out, item);
      out.EndArray();
      break;
    case Json::Kind::object:
      out.StartObject();
      for (size_t i = 0; i < value.keys().size(); ++i) {
        write_text(out, value.keys()[i]);
        write_value(out, value.items()[i]);
      }
      out.EndObject();
      break;
  }
}

}  // namespace

Json Json::truth(bool value) {
  Json json;
  json.kind_ = Kind::truth;
  json.truth_ = value;
  return json;
}
Json Json::integer(int64_t value) {
  return number(std::to_string(value));
}
Json Json::real(double value) {
  return std::isfinite(value) ? number(fmt::format("{}", value)) : Json();
}
Json Json::number(std::string digits) {
  Json json(std::move(digits));
  json.kind_ = Kind::number;
  return json;
}
Json Json::array(std::vector<Json> items) {
  Json json;
  json.kind_ = Kind::array;
  json.items_ = std::move(items);
  return json;
}
Json Json::object(Members members) {
  Json json;
  json.kind_ = Kind::object;
  for (auto& [key, value] : members) {
    json.keys_.push_back(std::move(key));
    json.items_.push_back(std::move(value));
  }
  return json;
}
Json Json::texts(const std::vector<std::string>& texts) {
  Json json = array();
  for (const std::string& text : texts) json.add(text);
  return json;
}

std::optional<int64_t> Json::as_integer() const {
  if (kind_ != Kind::number) return {};
  if (const auto whole = parse_number<int64_t>(text_)) return whole;
  const auto real = as_real();
  constexpr double kExact = 9007199254740992.0;  // from here on a double leaves some out
  if (!real || std::abs(*real) > kExact || *real != std::floor(*real)) return {};
  return static_cast<int64_t>(*real);
}

std::optional<double> Json::as_real() const {
  return kind_ == Kind::number ? parse_number<double>(text_) : std::nullopt;
}

const Json* Json::find(std::string_view key) const {
  const auto found = std::find(keys_.begin(), keys_.end(), key);
  return found == keys_.end() ? nullptr : &items_[static_cast<size_t>(found - keys_.begin())];
}

void Json::set(std::string_view key, Json value) {
  const auto found = std::find(keys_.begin(), keys_.end(), key);
  if (found != keys_.end()) {
    items_[static_cast<size_t>(found - keys_.begin())] = std::move(value);
    return;
  }
  keys_.emplace_back(key);
  items_.push_back(std::move(value));
}

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  // The library takes a zero for the end.
  if (text.find('\0') != std::string_view::npos) return fail(ErrorKind::input, "a zero byte is no JSON");
  rapidjson::MemoryStream bytes(text.data(), text.size());
  rapidjson::EncodedInputStream<rapidjson::UTF8<>, rapidjson::MemoryStream> stream(bytes);
  rapidjson::Reader reader;
  Builder builder(limits);
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                              rapidjson::kParseNumbersAsStringsFlag;
  const rapidjson::ParseResult done = reader.Parse<kFlags>(stream, builder);
  if (!done) {
    const char* why =
        builder.broken() != nullptr ? builder.broken() : rapidjson::GetParseError_En(done.Code());
    return fail(ErrorKind::input,
                fmt::format("no JSON that is taken here: {} (byte {})", why, done.Offset()));
  }
  return builder.take();
}

std::string write_json(const Json& value) {
  rapidjson::StringBuffer buffer;
  Writer out(buffer);
  write_value(out, value);
  const std::string_view written(buffer.GetString(), buffer.GetSize());
  std::string line;
  line.reserve(written.size());
  for (const char c : written) {
    if (c == 0x7f) {
      line += "\\u007f";  // occurs only in strings, like everything that is not ours
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace phlox::mcp
