// The conditions of `phlox diff --fail-if`.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "phlox/base/nearest.h"
#include "phlox/base/text.h"
#include "phlox/report/analysis.h"
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

// '*' stands for anything. Steps back to the last star only: linear in the text for each star.
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
  // At most this many packages deep: paths come from outside.
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

// Functions that a pattern which names none may mean: called alike, in whatever module.
std::vector<std::string> called_alike(const Diff& diff, std::string_view pattern) {
  constexpr size_t kMost = 3;
  const std::string_view last = pattern.substr(pattern.rfind('.') + 1);
  std::vector<std::string> words;
  for (const DiffRow& row : diff.functions) {
    const size_t dot = row.name.rfind('.');
    const std::string own = dot == std::string::npos ? row.name : row.name.substr(dot + 1);
    if (!nearest(pattern, std::span(&row.name, 1)).empty() || !nearest(last, std::span(&own, 1)).empty())
      words.push_back(row.name);
    if (words.size() == kMost) break;  // they are in the order of what changed most
  }
  return words;
}

struct Sums {
  double before = 0, after = 0;  // shares
  double before_weight = 0, after_weight = 0;
  double variance = 0;  // of the difference of shares
  double before_variance = 0, after_variance = 0;
  size_t found = 0;
};

double variance_of(const Estimate& estimate, double reach) {
  const double half = std::max(estimate.high - estimate.share, estimate.share - estimate.low) / reach;
  return half * half;
}

}  // namespace

Result<Condition> parse_condition(std::string_view text) {
  Condition condition;
  condition.text = std::string(trimmed(text));
  std::string_view rest = condition.text;
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
    // Names have parentheses of their own only in "<locals>" spelled out by nobody; the last one before the
    // comparison closes.
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
  if (rest.empty() || (rest[0] != '>' && rest[0] != '<')) return unreadable(text, "no '>' or '<'");
  condition.greater = rest[0] == '>';
  rest.remove_prefix(1);
  condition.or_equal = rest.starts_with("=");
  if (condition.or_equal) rest.remove_prefix(1);
  rest = trimmed(rest);

  const bool is_change = rest.starts_with("+") || rest.starts_with("-");
  double number = 0;
  const char* begin = rest.data() + (rest.starts_with("+") ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, rest.data() + rest.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) return unreadable(text, "no number to compare with");
  const std::string_view unit = trimmed(rest.substr(static_cast<size_t>(end - rest.data())));
  if (unit == "%") {
    condition.limit_kind = is_change ? LimitKind::relative : LimitKind::share;
    condition.limit = number / 100;
    return condition;
  }
  if (unit == "pp") {
    if (!is_change) return unreadable(text, "percentage points are a change: +2pp or -2pp");
    condition.limit_kind = LimitKind::points;
    condition.limit = number / 100;
    return condition;
  }
  if (const auto scale = time_unit(unit)) {
    condition.limit_kind = is_change ? LimitKind::weight_change : LimitKind::weight;
    condition.limit = number * *scale;
    return condition;
  }
  return unreadable(text, unit.empty() ? "the number has no unit: %, pp, ns, us, ms, s, m or h"
                                       : "a unit that is not %, pp, ns, us, ms, s, m or h");
}

Result<ConditionResult> check_condition(const Diff& diff, const Condition& condition) {
  const bool in_time =
      condition.limit_kind == LimitKind::weight || condition.limit_kind == LimitKind::weight_change;
  if (in_time && !profile::is_time(diff.weight)) {
    return fail(ErrorKind::usage,
                fmt::format("'{}' is about time, but {} are weighed", condition.text, diff.weight_title),
                "use %, pp, or --weight wall");
  }
  const bool whole = condition.function.empty();
  if (whole && (condition.limit_kind == LimitKind::share || condition.limit_kind == LimitKind::points)) {
    return fail(ErrorKind::usage, fmt::format("'{}': the whole is always 100 %", condition.text),
                "name a function: total(NAME)");
  }

  Sums sums;
  const double reach = quantile(kMissing, 0);
  if (whole) {
    sums.found = 1;
    sums.before_weight = double(diff.before_total);
    sums.after_weight = double(diff.after_total);
    // Relative to the weights, which shares cannot be.
    sums.before = sums.before_weight;
    sums.after = sums.after_weight;
  } else {
    for (const DiffRow& row : diff.functions) {
      if (!names(condition.function, row)) continue;
      const Change& change = condition.self ? row.self : row.total;
      ++sums.found;
      sums.before += change.before.share;
      sums.after += change.after.share;
      sums.before_weight += double(change.before.weight);
      sums.after_weight += double(change.after.weight);
      sums.variance += change.error * change.error;
      sums.before_variance += variance_of(change.before, reach);
      sums.after_variance += variance_of(change.after, reach);
    }
  }

  ConditionResult result;
  result.found = sums.found > 0;
  double distance = 0, error = 0;  // from what would be no news, with its standard error
  std::string value, limit;
  switch (condition.limit_kind) {
    case LimitKind::relative:
      result.value = sums.before > 0  ? sums.after / sums.before - 1
                     : sums.after > 0 ? std::numeric_limits<double>::infinity()
                                      : 0;
      distance = sums.after - sums.before;
      error = std::sqrt(sums.variance);
      value =
          std::isfinite(result.value) ? fmt::format("changed by {:+.1f} %", result.value * 100) : "is new";
      limit = fmt::format("{:+g} %", condition.limit * 100);
      break;
    case LimitKind::points:
      result.value = distance = sums.after - sums.before;
      error = std::sqrt(sums.variance);
      value = fmt::format("changed by {} points", points_words(result.value));
      limit = fmt::format("{:+g} points", condition.limit * 100);
      break;
    case LimitKind::share:
      result.value = sums.after;
      distance = sums.after - condition.limit;
      error = std::sqrt(sums.after_variance);
      value = "takes " + share_words(result.value);
      limit = fmt::format("{:g} %", condition.limit * 100);
      break;
    case LimitKind::weight:
      result.value = sums.after_weight;
      distance = sums.after_weight - condition.limit;
      error = std::sqrt(sums.after_variance) * double(diff.after_total);
      value = "takes " + time_words(std::llround(result.value));
      limit = time_words(std::llround(condition.limit));
      break;
    case LimitKind::weight_change:
      result.value = distance = sums.after_weight - sums.before_weight;
      error = std::hypot(std::sqrt(sums.before_variance) * double(diff.before_total),
                         std::sqrt(sums.after_variance) * double(diff.after_total));
      value = fmt::format("changed by {}", time_words(std::llround(result.value)));
      limit = time_words(std::llround(condition.limit));
      break;
  }
  const bool beyond = condition.greater ? result.value > condition.limit : result.value < condition.limit;
  const bool broken = beyond || (condition.or_equal && result.value == condition.limit);
  result.is_noise = broken && !whole && std::abs(distance) <= reach * error && error > 0;
  result.holds = broken && !result.is_noise;
  const std::string what =
      whole ? std::string("the whole recording")
            : fmt::format("{} of {}", condition.self ? "self" : "total", plain(condition.function));
  if (!result.found) {
    result.text =
        fmt::format("no function {} in either recording (limit of its {}: {} {})", plain(condition.function),
                    condition.self ? "self" : "total", condition.greater ? ">" : "<", limit);
    result.alike = called_alike(diff, condition.function);
    return result;
  }
  result.text = fmt::format("{} {} (limit: {} {}){}", what, value, condition.greater ? ">" : "<", limit,
                            result.is_noise ? ": noise"
                            : result.holds  ? ": beyond the limit"
                                            : ": within the limit");
  return result;
}

}  // namespace phlox::report
