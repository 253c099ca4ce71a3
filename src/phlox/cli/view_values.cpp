#include "phlox/cli/view_values.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/view/await_time.h"

namespace phlox::cli {

using view::By;
using view::NativeNames;
using view::Show;
using view::StateChoice;
using view::Weight;

namespace {

constexpr std::pair<std::string_view, StateChoice> kStates[] = {
    {"running", StateChoice::running},     {"runnable", StateChoice::runnable},
    {"blocked", StateChoice::blocked},     {"gil-holds", StateChoice::gil_holds},
    {"gil-waits", StateChoice::gil_waits}, {"idle", StateChoice::idle}};

// Calls `word` for each part between commas; returns false as soon as a call does.
template <class Word>
bool each_word(std::string_view text, Word&& word) {
  while (true) {
    const size_t comma = text.find(',');
    if (!word(text.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

Result<Nanoseconds> parse_time(std::string_view text) {
  const auto ns = parse_nanoseconds(text);
  // A hundred years, so that sums with it cannot overflow.
  if (!ns || !(*ns >= 0) || *ns > 3.15e18)
    return fail(ErrorKind::usage, fmt::format("cannot read the time '{}'", text),
                "write 1.5, 2s, 500ms, 3m or 1h");
  return static_cast<Nanoseconds>(std::llround(*ns));
}

}  // namespace

Result<By> parse_by(std::string_view text) {
  By by;
  bool function = false;
  std::string_view wrong;
  const bool read = each_word(text, [&](std::string_view word) {
    wrong = word;
    if (word == "function") return function = true;
    if (word == "line") return by.line = true;
    if (word == "thread") return by.thread = true;
    if (word == "process") return by.process = true;
    if (word == "program") return by.program = true;
    if (word == "label") return by.label = true;
    if (word == "endpoint") return by.endpoint = true;
    return false;
  });
  if (!read) {
    return fail(ErrorKind::usage, fmt::format("cannot split by '{}'", wrong),
                "choose from function, line, thread, process, program, label, endpoint");
  }
  if (function && by.line) {
    return fail(ErrorKind::usage, "a frame is a function or a line, not both",
                "leave one of 'function' and 'line' out");
  }
  return by;
}

Result<uint8_t> parse_states(std::string_view text) {
  unsigned states = 0;
  std::string_view wrong;
  const bool read = each_word(text, [&](std::string_view word) {
    wrong = word;
    for (const auto& [name, state] : kStates) {
      if (word != name) continue;
      states |= static_cast<uint8_t>(state);
      return true;
    }
    return false;
  });
  if (read) return static_cast<uint8_t>(states);
  return fail(ErrorKind::usage, fmt::format("there is no state '{}'", wrong),
              "choose from running, runnable, blocked, gil-holds, gil-waits, idle");
}

Result<Weight> parse_weight(std::string_view text) {
  if (text == "wall") return Weight::wall;
  if (text == "cpu") return Weight::cpu;
  if (text == "samples") return Weight::samples;
  if (text == "event") return Weight::count;
  if (text == view::kAwaitTime) return Weight::wall;
  return fail(ErrorKind::usage, fmt::format("cannot weigh by '{}'", text),
              "choose from wall, cpu, samples, await, event");
}

Result<NativeNames> parse_native_names(std::string_view text) {
  if (text == "full") return NativeNames::full;
  if (text == "short") return NativeNames::brief;
  return fail(ErrorKind::usage, fmt::format("native names are not '{}'", text), "choose from full, short");
}

Result<Show> parse_show(std::string_view text) {
  for (const Show show : {Show::work, Show::computing, Show::waiting, Show::everything}) {
    if (text == view::show_name(show)) return show;
  }
  return fail(ErrorKind::usage, fmt::format("cannot show '{}'", text),
              "choose from work, computing, waiting, everything");
}

Result<std::string> parse_trace(std::string_view text) {
  constexpr size_t kLeast = 8, kMost = 32;
  const std::string digits = lower_case(text);
  if (digits.size() < kLeast || digits.size() > kMost ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return fail(ErrorKind::usage, fmt::format("'{}' is no id of a trace or a span", text),
                "write 32 hex digits for a trace, or its first 8 or more; 16 for one span");
  }
  return digits;
}

Result<TimeRange> parse_time_range(std::string_view text) {
  const size_t dots = text.find("..");
  // "1.5..": the first two dots are the range's, unless a third one shows that the first is the number's.
  if (dots == std::string_view::npos) {
    return fail(ErrorKind::usage, fmt::format("cannot read the time range '{}'", text),
                "write FROM..TO, such as 2s..5s or ..500ms");
  }
  TimeRange range;
  const std::string_view from = text.substr(0, dots), to = text.substr(dots + 2);
  if (!from.empty()) {
    const auto parsed = parse_time(from);
    if (!parsed) return fail(parsed);
    range.from = *parsed;
  }
  if (!to.empty()) {
    const auto parsed = parse_time(to);
    if (!parsed) return fail(parsed);
    range.to = *parsed;
  }
  if (range.from >= range.to) {
    return fail(ErrorKind::usage, fmt::format("the time range '{}' is empty", text),
                "FROM must come before TO");
  }
  return range;
}

}  // namespace phlox::cli
