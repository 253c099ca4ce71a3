// A file that has no name until it is whole: killed before put_in_place(), it leaves nothing behind, and what
// is at its place stays until then. Killed in the moment in which it replaces a file, it may leave the whole
// new one as PATH.PID-TIME. errno says what failed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "phlox/base/descriptor.h"

namespace phlox {

class NewFile {
 public:
  // In the folder of `path`, which need not be there. Without a descriptor: errno says why not.
  static NewFile make(const std::string& path);
  ~NewFile();
  NewFile(NewFile&&) noexcept;
  NewFile& operator=(NewFile&&) = delete;

  explicit operator bool() const { return bool(file_); }
  int descriptor() const { return file_.get(); }
  // Replaces what is there, a link itself and not what it leads to. Once.
  bool put_in_place(mode_t mode, const std::optional<std::pair<uid_t, gid_t>>& owner);

 private:
  explicit NewFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::string name_;        // that it has while it is moved to its place
  bool in_memory_ = false;  // the file system has no files without a name
  Descriptor file_;
};

}  // namespace phlox
