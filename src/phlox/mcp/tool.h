// A tool as clients and models see it, and the check of the arguments of a call. What it does is its host's
// business.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/mcp/json.h"

namespace phlox::mcp {

struct Parameter {
  enum class Kind : uint8_t { text, texts, integer, number, flag };

  std::string name;
  Kind kind = Kind::text;
  std::string description;
  std::vector<std::string> choices = {};  // the only values of a text
  bool required = false;
  double least = 0, most = 0;            // of a number: the range, if `most` is above `least`
  std::optional<double> otherwise = {};  // the number if none is given
};

struct Tool {
  std::string name, title, description;
  std::vector<Parameter> parameters;
  bool read_only = true;
  Json result = {};  // the schema of the member `result` of the answer
};

// As tools/list has it. `structured`: with the schema of the structured answer, for the versions that have
// one.
Json describe(const Tool& tool, bool structured);

// Each argument is of a parameter, of its kind and in its range, and those that must be there are.
// `arguments`: an object. ErrorKind::usage.
Result<void> check_arguments(const Tool& tool, const Json& arguments);

}  // namespace phlox::mcp
