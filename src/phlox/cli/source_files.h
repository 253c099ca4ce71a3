// The program's source for `--source`: the files as they are here today.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "phlox/base/file_user.h"
#include "phlox/profile/profile.h"

namespace phlox::cli {

// Reads what the programs of a recording could read: where root reads, only files that each of their users
// may read. A recording may come from anybody, and what it names is put into a page that is passed on.
class SourceFiles {
 public:
  explicit SourceFiles(const profile::Profile& profile);

  // Nothing where it is not there, too long, no source by its name, or may not be read.
  std::optional<std::string> read(const std::string& file) const;

 private:
  bool elsewhere_ = false;  // a program saw other files than we do
  std::vector<std::optional<FileUser>> users_;
};

}  // namespace phlox::cli
