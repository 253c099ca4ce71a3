// A question in SQL to a recording of any origin. Only reads: what else SQL can do is refused before it runs,
// and what a query may take of time, memory and rows is limited.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/result.h"

namespace phlox::recording {

struct QueryLimits {
  size_t rows = 1000;
  size_t bytes = 4'000'000;  // of all values
  size_t value_bytes = 10'000;
  Nanoseconds time = 10 * kSecond;
};

// NULL, a number, a text. Bytes that are no text come as X'…'.
using QueryValue = std::variant<std::monostate, int64_t, double, std::string>;

struct QueryAnswer {
  std::vector<std::string> columns;
  std::vector<std::vector<QueryValue>> rows;
  bool has_more = false;        // there were more rows, or bytes
  size_t shortened_values = 0;  // values longer than QueryLimits::value_bytes
};

// ErrorKind::usage: the query is wrong, refused or takes too long. ErrorKind::input: as open_recording()
// says.
Result<QueryAnswer> query(const std::string& path, const std::string& sql, const QueryLimits& limits = {});

}  // namespace phlox::recording
