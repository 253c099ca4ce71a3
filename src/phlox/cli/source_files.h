// The program's source for `--source`: the files as they are on this host today.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "phlox/base/file_user.h"
#include "phlox/profile/profile.h"

namespace phlox::cli {

// Reads files that the programs of a recording could read: if root reads, only files that each of their users
// may read. A recording may come from anyone, and its files go into a page that is passed on.
class SourceFiles {
 public:
  explicit SourceFiles(const profile::Profile& profile);

  // Nothing if it does not exist, is too long, has no source extension, or may not be read.
  std::optional<std::string> read(const std::string& file) const;

 private:
  bool elsewhere_ = false;  // a program saw other files than we do
  std::vector<std::optional<FileUser>> users_;
};

}  // namespace phlox::cli
