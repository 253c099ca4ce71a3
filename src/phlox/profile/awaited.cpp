#include "phlox/profile/awaited.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace phlox::profile {
namespace {

// By kind.
constexpr std::string_view kKeys[] = {"other",  "file", "socket", "client",  "listener", "pipe",
                                      "device", "poll", "time",   "process", "object"};

std::string with_article(std::string_view noun) {
  const bool vowel = !noun.empty() && std::string_view("aeiou").find(noun.front()) != std::string_view::npos;
  return fmt::format("{} {}", vowel ? "an" : "a", noun);
}

// "worker.py (4712)" without its number.
std::string_view without_number(std::string_view process) {
  const size_t open = process.rfind(" (");
  if (open == std::string_view::npos || !process.ends_with(')')) return process;
  const std::string_view number = process.substr(open + 2, process.size() - open - 3);
  const bool digits = number.find_first_not_of("0123456789") == std::string_view::npos;
  return digits ? process.substr(0, open) : process;
}

}  // namespace

std::string_view awaited_key(AwaitedKind kind) {
  return kKeys[static_cast<size_t>(kind)];
}

AwaitedKind awaited_kind(std::string_view key) {
  const auto found = std::find(std::begin(kKeys), std::end(kKeys), key);
  return found == std::end(kKeys) ? AwaitedKind::other : static_cast<AwaitedKind>(found - std::begin(kKeys));
}

std::string awaited_words(const Awaited& awaited, AwaitedDetail detail) {
  const bool whole = detail == AwaitedDetail::everything && !awaited.other.empty();
  switch (awaited.kind) {
    case AwaitedKind::client:
      return whole ? fmt::format("a client of {}, {}", awaited.name, awaited.other)
                   : fmt::format("a client of {}", awaited.name);
    case AwaitedKind::listener:
      return fmt::format("connections to {}", awaited.name);
    case AwaitedKind::process:
      if (awaited.name.empty()) return whole ? fmt::format("process {}", awaited.other) : std::string();
      return whole ? fmt::format("{} ({})", awaited.name, awaited.other) : awaited.name;
    case AwaitedKind::time:
      return "until its time was up";
    case AwaitedKind::object:
      return with_article(awaited.name);
    default:
      break;
  }
  if (awaited.other.empty()) return awaited.name;
  const std::string_view other =
      detail == AwaitedDetail::alike ? without_number(awaited.other) : std::string_view(awaited.other);
  return fmt::format("{}{}with {}", awaited.name, awaited.name.empty() ? "" : " ", other);
}

}  // namespace phlox::profile
