#include "phlox/profile/source_rights.h"

#include "phlox/base/text.h"

namespace phlox::profile {
namespace {

// "source_rights.here.1000.1000.4,24,27"
constexpr std::string_view kPrefix = "source_rights.", kHere = "here.", kElsewhere = "elsewhere.";
// NGROUPS_MAX
constexpr size_t kMostGroupsOfUser = 65536;

bool take(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.remove_prefix(start.size());
  return true;
}

}  // namespace

std::string source_rights_key(const SourceRights& rights) {
  std::string key(kPrefix);
  key += rights.here ? kHere : kElsewhere;
  key += std::to_string(rights.user.user) + '.' + std::to_string(rights.user.group) + '.';
  for (const gid_t group : rights.user.groups) key += std::to_string(group) + ',';
  return key;
}

std::optional<SourceRights> parse_source_rights(std::string_view key) {
  SourceRights rights;
  if (!take(key, kPrefix)) return {};
  rights.here = take(key, kHere);
  if (!rights.here && !take(key, kElsewhere)) return {};
  if (!take_number(key, rights.user.user) || !take(key, ".")) return {};
  if (!take_number(key, rights.user.group) || !take(key, ".")) return {};
  for (gid_t group = 0; !key.empty(); rights.user.groups.push_back(group)) {
    if (rights.user.groups.size() == kMostGroupsOfUser || !take_number(key, group) || !take(key, ","))
      return {};
  }
  return rights;
}

std::vector<SourceRights> source_rights(const std::map<std::string, std::string, std::less<>>& meta) {
  std::vector<SourceRights> all;
  for (auto at = meta.lower_bound(kPrefix); at != meta.end() && at->first.starts_with(kPrefix); ++at) {
    // An invalid entry is a user of which nothing is known.
    all.push_back(parse_source_rights(at->first).value_or(SourceRights{{}, false}));
  }
  return all;
}

}  // namespace phlox::profile
