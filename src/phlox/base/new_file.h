// A file that has no name until it is whole: killed before put_in_place(), it leaves nothing behind, and what
// is at its place stays until then. Killed in the moment in which it replaces a file, it may leave the whole
// new one as PATH.PID-TIME. errno says what failed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "phlox/base/descriptor.h"
#include "phlox/base/place.h"

namespace phlox {

class NewFile {
 public:
  // In the folder of `path`, which need not be there, and for `user` (place.h). Without a descriptor: errno
  // says why not.
  static NewFile make(const std::string& path, const std::optional<FileUser>& user = {});
  ~NewFile();
  NewFile(NewFile&&) noexcept;
  NewFile& operator=(NewFile&&) = delete;

  explicit operator bool() const { return bool(file_); }
  int descriptor() const { return file_.get(); }
  // Replaces what is there, a link itself and not what it leads to. Once. `meanwhile`: the name that it has
  // for the moment in which it replaces a file, in place of PATH.PID-TIME; a killed run may have left one,
  // which goes.
  bool put_in_place(mode_t mode, const std::string& meanwhile = {});

 private:
  NewFile() = default;

  std::optional<Place> place_;
  std::string name_;        // that it has while it is moved to its place
  bool in_memory_ = false;  // the file system has no files without a name
  Descriptor file_;
};

}  // namespace phlox
