#include "phlox/incidents/condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <optional>

#include "phlox/base/text.h"

namespace phlox::incidents {
namespace {

// Shorter ones would be found everywhere, and longer ones do not fit into what is kept for a judgement.
constexpr Nanoseconds kShortestLength = 20'000'000, kLongestLength = 10 * kSecond;
constexpr Nanoseconds kShortestAverage = kSecond, kLongestAverage = 600 * kSecond;
constexpr double kMostCpus = 10'000;
constexpr size_t kLongestText = 4096;

std::string_view example_of(Kind kind);

tl::unexpected<Error> not_valid(const Condition& of, std::string_view value, std::string_view what) {
  return fail(ErrorKind::usage, fmt::format("{}: '{}' is not {}", kind_name(of.kind), value, what),
              fmt::format("for example: --on {}", example_of(of.kind)));
}

Result<void> take_length(Condition& into, std::string_view value) {
  const auto length = parse_nanoseconds(value);
  if (!length || *length < double(kShortestLength) || *length > double(kLongestLength))
    return not_valid(into, value, "a time from 20ms to 10s");
  into.length = static_cast<Nanoseconds>(*length);
  return {};
}

// "90%" as 0.9.
std::optional<double> parse_share(std::string_view text, double most) {
  if (!text.ends_with('%')) return {};
  const auto percent = parse_number<double>(text.substr(0, text.size() - 1));
  if (!percent || *percent <= 0 || *percent > 100 * most) return {};
  return *percent / 100;
}

Result<void> take_cpus(Condition& into, std::string_view value) {
  const size_t slash = value.find('/');
  const auto share = parse_share(value.substr(0, slash), kMostCpus);
  if (!share) return not_valid(into, value, "a percentage of one CPU");
  into.share = *share;
  if (slash == value.npos) return {};
  const auto over = parse_nanoseconds(value.substr(slash + 1));
  if (!over || *over < double(kShortestAverage) || *over > double(kLongestAverage))
    return not_valid(into, value.substr(slash + 1), "a time from 1s to 10m");
  into.over = static_cast<Nanoseconds>(*over);
  return {};
}

Result<void> take_memory(Condition& into, std::string_view value) {
  const auto share = parse_share(value, 1);
  if (!share) return not_valid(into, value, "a percentage of the memory limit");
  into.share = *share;
  return {};
}

// The file's name ends at the first colon.
Result<void> take_log(Condition& into, std::string_view value) {
  const size_t colon = value.find(':');
  if (colon == value.npos || colon == 0 || colon + 1 == value.size())
    return not_valid(into, value, "a file, a colon and a regular expression");
  into.file = value.substr(0, colon);
  into.regex = value.substr(colon + 1);
  return {};
}

Result<void> take_signal(Condition& into, std::string_view value) {
  if (value.starts_with("SIG")) value.remove_prefix(3);
  if (value == "USR1") into.signal = SIGUSR1;
  if (value == "USR2") into.signal = SIGUSR2;
  if (into.signal == 0) return not_valid(into, value, "USR1 or USR2");
  return {};
}

Result<void> take_address(Condition& into, std::string_view value) {
  if (value.empty()) return not_valid(into, value, "an address and a port of this host");
  into.address = value;
  return {};
}

Result<void> take_nothing(Condition&, std::string_view) {
  return {};
}

struct Word {
  std::string_view name;
  Kind kind;
  std::string_view example;
  Result<void> (*take)(Condition&, std::string_view);

  bool has_value() const { return example != name; }
};
constexpr Word kWords[] = {
    {"stall", Kind::stall, "stall=200ms", take_length},
    {"gil", Kind::gil, "gil=100ms", take_length},
    {"cpu", Kind::cpu, "cpu=90%/10s", take_cpus},
    {"cpu-wait", Kind::cpu_wait, "cpu-wait=50%/10s", take_cpus},
    {"memory", Kind::memory, "memory=90%", take_memory},
    {"log", Kind::log, "'log=/var/log/app.log:ERROR|timed out'", take_log},
    {"signal", Kind::signal, "signal=USR2", take_signal},
    {"http", Kind::http, "http=127.0.0.1:9465", take_address},
    {"death", Kind::death, "death", take_nothing},
};

const Word& word_of(Kind kind) {
  return *std::find_if(std::begin(kWords), std::end(kWords),
                       [&](const Word& word) { return word.kind == kind; });
}

std::string_view example_of(Kind kind) {
  return word_of(kind).example;
}

std::string all_names() {
  std::string names;
  for (const Word& word : kWords) names += fmt::format("{}{}", names.empty() ? "" : ", ", word.name);
  return names;
}

bool is_name(std::string_view text) {
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](const Word& word) { return word.name == text; });
}

}  // namespace

std::string_view kind_name(Kind kind) {
  return word_of(kind).name;
}

Result<Condition> parse_condition(std::string_view text) {
  if (text.size() > kLongestText || text.find('\0') != text.npos)
    return fail(ErrorKind::usage, "a condition is too long, or not text", "");
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  // A regular expression may contain anything.
  for (size_t comma = name == "log" ? text.npos : text.find(','); comma != text.npos;
       comma = text.find(',', comma + 1)) {
    const std::string_view next = text.substr(comma + 1);
    if (is_name(next.substr(0, next.find_first_of("=,"))))
      return fail(ErrorKind::usage, "there is more than one condition",
                  fmt::format("give --on for each: --on {} --on {}", text.substr(0, comma), next));
  }
  for (const Word& word : kWords) {
    if (word.name != name) continue;
    if (word.has_value() != (equals != text.npos))
      return fail(ErrorKind::usage,
                  fmt::format("{}: {}", name, word.has_value() ? "no value is given" : "takes no value"),
                  fmt::format("for example: --on {}", word.example));
    Condition condition;
    condition.kind = word.kind;
    const auto value = equals == text.npos ? std::string_view() : text.substr(equals + 1);
    if (auto taken = word.take(condition, value); !taken) return fail(taken);
    return condition;
  }
  return fail(ErrorKind::usage, fmt::format("there is no condition '{}'", name),
              fmt::format("one of: {}; for example: --on stall=200ms", all_names()));
}

bool has(const std::vector<Condition>& conditions, Kind kind) {
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const Condition& one) { return one.kind == kind; });
}

Nanoseconds shortest(const std::vector<Condition>& conditions, Kind kind) {
  Nanoseconds least = 0;
  for (const Condition& one : conditions) {
    if (one.kind == kind && (least == 0 || one.length < least)) least = one.length;
  }
  return least;
}

}  // namespace phlox::incidents
