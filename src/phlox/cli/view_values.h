// The choices of a view as they are written on a command line: "line,thread", "running,gil-waits", "2s..5s".
// Pure; an error says what would be valid.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "phlox/base/result.h"
#include "phlox/view/choices.h"

namespace phlox::cli {

Result<view::By> parse_by(std::string_view text);     // "function", "line,thread,process"
Result<uint8_t> parse_states(std::string_view text);  // "running,gil-waits"
// "wall" | "cpu" | "samples" | "await" (Weight::wall, of tasks) | "event" (Weight::count, until the unit is
// known)
Result<view::Weight> parse_weight(std::string_view text);
Result<view::NativeNames> parse_native_names(std::string_view text);  // "full" | "short"
// "4BF92F3577B34DA6": 8 to 32 hex digits; returned in lower case.
Result<std::string> parse_trace(std::string_view text);
Result<view::Show> parse_show(std::string_view text);  // "work" | "computing" | "waiting" | "everything"

// "2s..5s", "..500ms", "1.5..": numbers are seconds unless they have ns, us, ms, s, m.
struct TimeRange {
  Nanoseconds from = 0;
  Nanoseconds to = std::numeric_limits<Nanoseconds>::max();
};
Result<TimeRange> parse_time_range(std::string_view text);

}  // namespace phlox::cli
