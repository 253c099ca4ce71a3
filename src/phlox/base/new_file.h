// A file without a name until it is complete. If phlox is killed before put_in_place(), it leaves nothing
// behind, and the old file stays. If it is killed while it replaces a file, the complete new file may stay as
// PATH.PID-TIME. errno says what failed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "phlox/base/descriptor.h"
#include "phlox/base/place.h"

namespace phlox {

class NewFile {
 public:
  // In the folder of `path`, which need not exist, and for `user` (place.h). Without a descriptor: errno says
  // why.
  static NewFile make(const std::string& path, const std::optional<FileUser>& user = {});
  ~NewFile();
  NewFile(NewFile&&) noexcept;
  NewFile& operator=(NewFile&&) = delete;

  explicit operator bool() const { return bool(file_); }
  int descriptor() const { return file_.get(); }
  // Replaces the old file; replaces a link, not its target. Call once. `meanwhile`: the new file's name while
  // it replaces another, instead of PATH.PID-TIME; a file that a killed run left there is removed.
  bool put_in_place(mode_t mode, const std::string& meanwhile = {});

 private:
  NewFile() = default;

  std::optional<Place> place_;
  std::string name_;        // its name while it is moved to its place
  bool in_memory_ = false;  // the file system has no files without a name
  Descriptor file_;
};

}  // namespace phlox
