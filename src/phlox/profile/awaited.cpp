#include "phlox/profile/awaited.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace phlox::profile {
namespace {

// By kind.
constexpr std::string_view kKeys[] = {"other",  "file", "socket", "client",  "listener", "pipe",
                                      "device", "poll", "time",   "process", "object"};

std::string with_article(std::string_view noun) {
  const bool vowel = !noun.empty() && std::string_view("aeiou").find(noun.front()) != std::string_view::npos;
  return fmt::format("{} {}", vowel ? "an" : "a", noun);
}

}  // namespace

std::string_view awaited_key(AwaitedKind kind) {
  return kKeys[static_cast<size_t>(kind)];
}

AwaitedKind awaited_kind(std::string_view key) {
  const auto found = std::find(std::begin(kKeys), std::end(kKeys), key);
  return found == std::end(kKeys) ? AwaitedKind::other : static_cast<AwaitedKind>(found - std::begin(kKeys));
}

std::string_view without_number(std::string_view process) {
  const size_t open = process.rfind(" (");
  if (open == std::string_view::npos || !process.ends_with(')')) return process;
  const std::string_view number = process.substr(open + 2, process.size() - open - 3);
  const bool digits = number.find_first_not_of("0123456789") == std::string_view::npos;
  return digits ? process.substr(0, open) : process;
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
      return "a timeout";
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

AlikeAwaited::AlikeAwaited(const Profile& profile) : groups_of_{0}, groups_(1) {
  std::map<std::pair<AwaitedKind, std::string>, uint32_t> known;
  for (const Awaited& awaited : profile.awaited()) {
    Group group{awaited.kind, awaited_words(awaited, AwaitedDetail::alike)};
    const auto [at, fresh] =
        known.try_emplace({group.kind, group.words}, static_cast<uint32_t>(groups_.size()));
    if (fresh) groups_.push_back(std::move(group));
    groups_of_.push_back(at->second);
  }
}

}  // namespace phlox::profile
