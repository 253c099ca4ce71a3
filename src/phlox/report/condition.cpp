// The conditions of `phlox diff --fail-if`.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "phlox/base/nearest.h"
#include "phlox/base/text.h"
#include "phlox/report/diff.h"
#include "phlox/report/table.h"

namespace phlox::report {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

tl::unexpected<Error> unreadable(std::string_view text, std::string_view why) {
  return fail(ErrorKind::usage, fmt::format("cannot read the condition '{}': {}", text, why),
              "write 'total(json.loads) > +10%', 'self(Parser.parse) > +2pp', 'total(main) > 1.5s'");
}

// '*' matches anything. Backtracks only to the last star: linear in the text for each star.
bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// The qualified name, with as much of the module's path before it as the pattern has:
// /usr/lib/python3.12/json/decoder.py and JSONDecoder.decode match "JSONDecoder.decode",
// "decoder.JSONDecoder.decode" and "json.decoder.JSONDecoder.decode".
bool names(std::string_view pattern, const DiffRow& row) {
  if (matches(pattern, row.name) || matches(pattern, row.full)) return true;
  std::string path = row.file;
  if (path.ends_with(".py")) path.resize(path.size() - 3);
  if (path.ends_with("/__init__")) path.resize(path.size() - 9);
  // Limits the depth: paths come from a file.
  size_t start = path.size();
  for (int depth = 0; depth < 16 && start > 0; ++depth) {
    const size_t slash = path.rfind('/', start - 1);
    start = slash == std::string::npos ? 0 : slash;
    std::string candidate = path.substr(slash == std::string::npos ? 0 : slash + 1);
    for (char& c : candidate) c = c == '/' ? '.' : c;
    if (matches(pattern, candidate + "." + row.name)) return true;
    if (slash == std::string::npos) break;
  }
  return false;
}

// Functions that an unmatched pattern may mean: similar names, in any module.
std::vector<std::string> called_alike(const Diff& diff, std::string_view pattern) {
  constexpr size_t kMost = 3;
  const std::string_view last = pattern.substr(pattern.rfind('.') + 1);
  std::vector<std::string> words;
  for (const DiffRow& row : diff.functions) {
    const size_t dot = row.name.rfind('.');
    const std::string own = dot == std::string::npos ? row.name : row.name.substr(dot + 1);
    if (!nearest(pattern, std::span(&row.name, 1)).empty() || !nearest(last, std::span(&own, 1)).empty())
      words.push_back(row.name);
    if (words.size() == kMost) break;  // ordered by the largest change
  }
  return words;
}

// The quantity of a condition in each recording, and the whole that it is a part of.
struct Side {
  std::vector<Amount> amounts, wholes;
  std::vector<double> lengths;  // ns
};

Amount scaled(Amount amount, double factor) {
  return {amount.value * factor, amount.variance * factor * factor, amount.step * factor};
}

// Errors of functions that call each other are correlated: in the worst case their sizes add up.
void add(Amount& sum, const Amount& more) {
  const double error = std::sqrt(sum.variance) + std::sqrt(more.variance);
  sum = {sum.value + more.value, error * error, std::max(sum.step, more.step)};
}

std::vector<Amount> runs_of(const Change& change, bool after) {
  const std::vector<double>& runs = after ? change.after_runs : change.before_runs;
  if (runs.empty()) return {after ? change.after_amount : change.before_amount};
  std::vector<Amount> amounts;
  for (const double value : runs) amounts.push_back({value, 0, 0});
  return amounts;
}

Side side_of(const Diff& diff, const std::vector<const Change*>& changes, bool after) {
  Side side;
  side.wholes = runs_of(diff.whole, after);
  for (const Amount& length : runs_of(diff.elapsed, after)) side.lengths.push_back(length.value);
  side.amounts.resize(side.wholes.size());
  for (const Change* change : changes) {
    const auto runs = runs_of(*change, after);
    for (size_t i = 0; i < runs.size(); ++i) add(side.amounts[i], runs[i]);
  }
  return side;
}

std::vector<Amount> shares_of(const Side& side) {
  std::vector<Amount> shares;
  for (size_t i = 0; i < side.amounts.size(); ++i)
    shares.push_back(scaled(side.amounts[i], side.wholes[i].value > 0 ? 1 / side.wholes[i].value : 0));
  return shares;
}

// The recorded weights, not those per second.
std::vector<Amount> weights_of(const Diff& diff, const Side& side) {
  std::vector<Amount> weights;
  const double unit = view::is_time(diff.weight) ? 1 : double(kSecond);
  for (size_t i = 0; i < side.amounts.size(); ++i)
    weights.push_back(scaled(side.amounts[i], diff.per == Per::run ? 1 : side.lengths[i] / unit));
  return weights;
}

// How far the compared value is beyond the limit, with its 99 % interval.
struct Distance {
  double value = 0, low = 0, high = 0;
};

Distance distance_of(const Diff& diff, const Condition& condition, const Side& before, const Side& after) {
  Runs compared;
  double limit = condition.limit;
  switch (condition.limit_kind) {
    case LimitKind::relative:
      for (const Amount& amount : before.amounts) compared.before.push_back(scaled(amount, 1 + limit));
      compared.after = after.amounts;
      limit = 0;
      break;
    case LimitKind::points:
      compared = {shares_of(before), shares_of(after)};
      break;
    case LimitKind::share:
      compared.after = shares_of(after);
      break;
    case LimitKind::weight:
      compared.after = weights_of(diff, after);
      break;
    case LimitKind::weight_change:
      compared = {weights_of(diff, before), weights_of(diff, after)};
      break;
  }
  const Comparison found = interval_of(compared);
  return {found.difference - limit, found.low - limit, found.high - limit};
}

// The value and the ends of its interval, as text in the condition's unit.
struct Words {
  std::string value, interval, limit;
};

Words words_of(const Condition& condition, const Distance& distance, double before, double& value) {
  const double limit = condition.limit;
  const double scale = condition.limit_kind == LimitKind::relative ? before : 1;
  if (scale <= 0) {
    value = distance.value > 0 ? std::numeric_limits<double>::infinity() : 0;
    return {distance.value > 0 ? "is new" : "is in neither", "", fmt::format("{:+g} %", limit * 100)};
  }
  value = distance.value / scale + limit;
  const double low = distance.low / scale + limit, high = distance.high / scale + limit;
  switch (condition.limit_kind) {
    case LimitKind::relative:
      // No value is below zero, so the change is at least -100 %.
      return {fmt::format("changed by {:+.1f} %", value * 100),
              fmt::format("{:+.1f} to {:+.1f} %", std::max(-1.0, low) * 100, std::max(-1.0, high) * 100),
              fmt::format("{:+g} %", limit * 100)};
    case LimitKind::points:
      return {fmt::format("changed by {} points", points_words(value)),
              fmt::format("{} to {}", points_words(low), points_words(high)),
              fmt::format("{:+g} points", limit * 100)};
    case LimitKind::share:
      return {"takes " + share_words(value),
              fmt::format("{} to {}", share_words(std::max(0.0, low)), share_words(std::min(1.0, high))),
              fmt::format("{:g} %", limit * 100)};
    case LimitKind::weight:
    case LimitKind::weight_change:
      break;
  }
  auto time = [](double ns) { return time_words(std::llround(std::clamp(ns, -9e18, 9e18))); };
  const bool change = condition.limit_kind == LimitKind::weight_change;
  return {fmt::format("{} {}", change ? "changed by" : "takes", time(value)),
          fmt::format("{} to {}", time(change ? low : std::max(0.0, low)), time(high)), time(limit)};
}

std::string basis_words(const Diff& diff, const Condition& condition) {
  std::string words = diff.question == Question::recordings
                          ? std::string("these two recordings")
                          : fmt::format("{} + {} runs", diff.before.runs, diff.after.runs);
  const bool of_time =
      condition.limit_kind == LimitKind::weight || condition.limit_kind == LimitKind::weight_change;
  if (diff.per == Per::second && !of_time && condition.limit_kind == LimitKind::relative)
    words += ", per second of recording";
  if (diff.per == Per::second && condition.limit_kind == LimitKind::weight_change)
    words += fmt::format(", of {} and {}", time_words(diff.before.elapsed), time_words(diff.after.elapsed));
  return words;
}

// "total", "total(NAME)" or "self(NAME)", at the beginning of `rest`, which then begins with the comparison.
Result<void> read_subject(std::string_view text, std::string_view& rest, Condition& condition) {
  if (rest.starts_with("self")) {
    condition.self = true;
    rest.remove_prefix(4);
  } else if (rest.starts_with("total")) {
    rest.remove_prefix(5);
  } else {
    return unreadable(text, "it begins with 'self' or 'total'");
  }
  rest = trimmed(rest);
  if (rest.starts_with("(")) {
    // A name may contain '<' and '>', as "<lambda>" does. So the last of these is the comparison, and the
    // last ')' before it ends the name.
    const size_t compare = rest.find_last_of("<>");
    const size_t close = rest.rfind(')', compare);
    if (compare == std::string_view::npos || close == std::string_view::npos)
      return unreadable(text, "')' is missing");
    condition.function = std::string(trimmed(rest.substr(1, close - 1)));
    if (condition.function.empty()) return unreadable(text, "no function between the parentheses");
    rest = trimmed(rest.substr(close + 1));
  } else if (condition.self) {
    return unreadable(text, "'self' needs a function: self(NAME)");
  }
  return {};
}

// The number that `rest` begins with, and its unit. A sign makes it a change.
Result<void> read_limit(std::string_view text, std::string_view rest, Condition& condition) {
  const bool is_change = rest.starts_with("+") || rest.starts_with("-");
  double number = 0;
  const char* begin = rest.data() + (rest.starts_with("+") ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, rest.data() + rest.size(), number);
  const bool two_signs = rest.starts_with("+-");
  if (error != std::errc{} || !std::isfinite(number) || two_signs)
    return unreadable(text, "no number to compare with");
  const std::string_view unit = trimmed(rest.substr(static_cast<size_t>(end - rest.data())));
  if (unit == "%") {
    condition.limit_kind = is_change ? LimitKind::relative : LimitKind::share;
    condition.limit = number / 100;
  } else if (unit == "pp") {
    if (!is_change) return unreadable(text, "percentage points are a change: +2pp or -2pp");
    condition.limit_kind = LimitKind::points;
    condition.limit = number / 100;
  } else if (const auto scale = time_unit(unit)) {
    condition.limit_kind = is_change ? LimitKind::weight_change : LimitKind::weight;
    condition.limit = number * *scale;
  } else {
    return unreadable(text, unit.empty() ? "the number has no unit: %, pp, ns, us, ms, s, m or h"
                                         : "a unit that is not %, pp, ns, us, ms, s, m or h");
  }
  return {};
}

}  // namespace

Result<Condition> parse_condition(std::string_view text) {
  Condition condition;
  condition.text = std::string(trimmed(text));
  std::string_view rest = condition.text;
  if (auto read = read_subject(text, rest, condition); !read) return fail(read);
  if (rest.empty() || (rest[0] != '>' && rest[0] != '<')) return unreadable(text, "no '>' or '<'");
  condition.greater = rest[0] == '>';
  rest.remove_prefix(1);
  condition.or_equal = rest.starts_with("=");
  if (condition.or_equal) rest.remove_prefix(1);
  if (auto read = read_limit(text, trimmed(rest), condition); !read) return fail(read);
  return condition;
}

Result<ConditionResult> check_condition(const Diff& diff, const Condition& condition) {
  const bool in_time =
      condition.limit_kind == LimitKind::weight || condition.limit_kind == LimitKind::weight_change;
  if (in_time && !view::is_time(diff.weight)) {
    return fail(ErrorKind::usage,
                fmt::format("'{}' is about time, but {} are weighed", condition.text, diff.weight_title),
                "use %, pp, or --weight wall");
  }
  const bool whole = condition.function.empty();
  if (whole && (condition.limit_kind == LimitKind::share || condition.limit_kind == LimitKind::points)) {
    return fail(ErrorKind::usage, fmt::format("'{}': the whole is always 100 %", condition.text),
                "name a function: total(NAME)");
  }

  std::vector<const Change*> changes;
  if (whole) changes.push_back(&diff.whole);
  for (const DiffRow& row : diff.functions) {
    if (!whole && names(condition.function, row)) changes.push_back(condition.self ? &row.self : &row.total);
  }
  ConditionResult result;
  result.found = !changes.empty();
  const std::string_view compare = condition.greater ? ">" : "<";
  const Side before = side_of(diff, changes, false), after = side_of(diff, changes, true);
  const Distance distance = distance_of(diff, condition, before, after);
  const Words words = words_of(condition, distance, mean_of(before.amounts), result.value);
  if (!result.found) {
    result.text =
        fmt::format("no function {} in {} recording (limit of its {}: {} {})", plain(condition.function),
                    diff.question == Question::recordings ? "either" : "any",
                    condition.self ? "self" : "total", compare, words.limit);
    result.alike = called_alike(diff, condition.function);
    return result;
  }
  const bool exact = distance.low == distance.high;
  const double nearest = condition.greater ? distance.low : -distance.high;
  const double farthest = condition.greater ? distance.high : -distance.low;
  result.holds = diff.decides && (nearest > 0 || (exact && condition.or_equal && nearest == 0));
  result.is_unclear = !result.holds && farthest > 0;
  const std::string what =
      whole ? std::string("the whole recording")
            : fmt::format("{} of {}", condition.self ? "self" : "total", plain(condition.function));
  const std::string_view verdict = result.holds         ? "beyond the limit"
                                   : !result.is_unclear ? "within the limit"
                                   : !diff.decides      ? "not decided: too few runs"
                                                        : "not decided: the interval contains the limit";
  result.text =
      fmt::format("{} {} ({}limit: {} {}; {}): {}", what, words.value,
                  words.interval.empty() || exact ? std::string() : fmt::format("99 %: {}; ", words.interval),
                  compare, words.limit, basis_words(diff, condition), verdict);
  return result;
}

}  // namespace phlox::report
