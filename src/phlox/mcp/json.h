// A JSON value: of a message, of a tool's answer. Parsed from anybody's bytes with caps, and written as one
// line of ASCII.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/base/result.h"

namespace phlox::mcp {

class Json {
 public:
  enum class Kind : uint8_t { null, truth, number, string, array, object };
  using Members = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  // Bytes that are not UTF-8 become U+FFFD when they are written.
  Json(std::string text) : kind_(Kind::string), text_(std::move(text)) {}
  Json(std::string_view text) : Json(std::string(text)) {}
  Json(const char* text) : Json(std::string(text)) {}
  static Json truth(bool value);
  static Json integer(int64_t value);
  static Json real(double value);  // a NaN or an infinity: null
  // `digits`: a number as JSON writes it.
  static Json number(std::string digits);
  static Json array(std::vector<Json> items = {});
  static Json object(Members members = {});
  static Json texts(const std::vector<std::string>& texts);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_true() const { return kind_ == Kind::truth && truth_; }
  // Of a string; of a number its digits, as they were written. Else empty.
  const std::string& text() const { return text_; }
  // A number without a fraction that fits, however it is written (10.0).
  std::optional<int64_t> as_integer() const;
  std::optional<double> as_real() const;

  const std::vector<Json>& items() const { return items_; }
  const std::vector<std::string>& keys() const { return keys_; }
  // Nullptr: not an object, or no such member.
  const Json* find(std::string_view key) const;

  void add(Json item) { items_.push_back(std::move(item)); }
  // Replaces a member of that name.
  void set(std::string_view key, Json value);
  std::vector<Json>& items() { return items_; }
  std::string& text() { return text_; }

  // The same kind, and the same value as it is written: 1 is not 1.0.
  bool operator==(const Json& other) const = default;

 private:
  Kind kind_ = Kind::null;
  bool truth_ = false;
  std::string text_;
  std::vector<Json> items_;        // of an array; of an object its values
  std::vector<std::string> keys_;  // one for each value
};

struct JsonLimits {
  size_t depth = 32;
  size_t values = 10'000;  // of all kinds, keys not counted
};

// One value and nothing after it, in UTF-8. The last of several members with one name counts.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

// One line, without its end: ASCII without control characters.
std::string write_json(const Json& value);

}  // namespace phlox::mcp
