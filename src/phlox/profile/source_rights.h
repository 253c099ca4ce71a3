// The users of a recording's programs, for reading the source files that they name: the recording's facts
// (meta) have each user once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/file_user.h"

namespace phlox::profile {

struct SourceRights {
  FileUser user;
  bool here = true;  // it saw the same files as its recorder: the same root and mount namespace

  friend bool operator==(const SourceRights&, const SourceRights&) = default;
};

// The key of the fact; its value is empty.
std::string source_rights_key(const SourceRights& rights);
std::optional<SourceRights> parse_source_rights(std::string_view key);
// All users of a recording, by its facts. Empty: it has none.
std::vector<SourceRights> source_rights(const std::map<std::string, std::string, std::less<>>& meta);

}  // namespace phlox::profile
