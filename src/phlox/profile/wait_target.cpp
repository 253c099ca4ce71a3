#include "phlox/profile/wait_target.h"

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

std::string_view wait_target_key(WaitTargetKind kind) {
  return kKeys[static_cast<size_t>(kind)];
}

WaitTargetKind wait_target_kind(std::string_view key) {
  const auto found = std::find(std::begin(kKeys), std::end(kKeys), key);
  return found == std::end(kKeys) ? WaitTargetKind::other
                                  : static_cast<WaitTargetKind>(found - std::begin(kKeys));
}

std::string_view without_number(std::string_view process) {
  const size_t open = process.rfind(" (");
  if (open == std::string_view::npos || !process.ends_with(')')) return process;
  const std::string_view number = process.substr(open + 2, process.size() - open - 3);
  const bool digits = number.find_first_not_of("0123456789") == std::string_view::npos;
  return digits ? process.substr(0, open) : process;
}

std::string wait_target_words(const WaitTarget& wait_target, WaitTargetDetail detail) {
  const bool whole = detail == WaitTargetDetail::everything && !wait_target.other.empty();
  switch (wait_target.kind) {
    case WaitTargetKind::client:
      return whole ? fmt::format("a client of {}, {}", wait_target.name, wait_target.other)
                   : fmt::format("a client of {}", wait_target.name);
    case WaitTargetKind::listener:
      return fmt::format("connections to {}", wait_target.name);
    case WaitTargetKind::process:
      if (wait_target.name.empty())
        return whole ? fmt::format("process {}", wait_target.other) : std::string();
      return whole ? fmt::format("{} ({})", wait_target.name, wait_target.other) : wait_target.name;
    case WaitTargetKind::time:
      return "a timeout";
    case WaitTargetKind::object:
      return with_article(wait_target.name);
    default:
      break;
  }
  if (wait_target.other.empty()) return wait_target.name;
  const std::string_view other = detail == WaitTargetDetail::alike ? without_number(wait_target.other)
                                                                   : std::string_view(wait_target.other);
  return fmt::format("{}{}with {}", wait_target.name, wait_target.name.empty() ? "" : " ", other);
}

WaitTargetGroups::WaitTargetGroups(const Profile& profile) : groups_of_{0}, groups_(1) {
  std::map<std::pair<WaitTargetKind, std::string>, uint32_t> known;
  for (const WaitTarget& wait_target : profile.wait_targets()) {
    Group group{wait_target.kind, wait_target_words(wait_target, WaitTargetDetail::alike)};
    const auto [at, fresh] =
        known.try_emplace({group.kind, group.words}, static_cast<uint32_t>(groups_.size()));
    if (fresh) groups_.push_back(std::move(group));
    groups_of_.push_back(at->second);
  }
}

}  // namespace phlox::profile
