// JSON from outside: read completely, without recursion, with values that may be missing.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/importers/input.h"

namespace phlox::importers {

using Json = rapidjson::Value;

// The texts of its values are in the bytes that were read.
class JsonFile {
 public:
  const Json& operator*() const { return root_; }
  const Json* operator->() const { return &root_; }

 private:
  friend Result<JsonFile> parse_json(Input& input);

  std::unique_ptr<std::string> bytes_;
  rapidjson::Document root_;
};

// ErrorKind::input: invalid JSON, more than 1 GiB of it, or a text of more than 16 MiB in it.
Result<JsonFile> parse_json(Input& input);

// Null, an empty text, nothing: if it is missing, or of another type.
const Json* member(const Json* object, const char* name);
const Json* element(const Json* array, uint64_t index);
size_t length(const Json* array);
std::string_view text(const Json* value);
// Holds every whole number of 64 bits exactly; a double does not.
using Number = long double;
static_assert(std::numeric_limits<Number>::digits >= 64);
std::optional<Number> number(const Json* value);
// Rounds weights that are not negative: the rest of one is added to the next, so that only their sum is
// rounded.
class WholeWeights {
 public:
  uint64_t take(Number weight);

 private:
  Number rest_ = 0;
};
// Whole numbers from 0 on, for indices of arrays and ids.
std::optional<uint64_t> index_of(const Json* value);
// A line of a source; 0: none.
int32_t line(const Json* value);

// The keys of the outermost object, in the order of the file; none if it is no object. For a file whose start
// does not say what it is.
std::vector<std::string> outer_keys(Input& input);

// Whether the start of a file is an object that has all of these keys somewhere.
bool is_json_with(std::span<const std::byte> head, std::initializer_list<std::string_view> keys);

}  // namespace phlox::importers
