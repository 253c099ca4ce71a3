// Where a file will be: an open folder and a name in it. All work happens in that folder, whatever replaces a
// folder on the path meanwhile, and with the rights of the user who gets the file.
#pragma once

#include <fcntl.h>

#include <optional>
#include <string>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_user.h"

namespace phlox {

class Place {
 public:
  // `user`: who gets the file (under sudo: the calling user). Where that user may not write, root writes only
  // if no other user can put a link on the path. None: errno says why.
  static std::optional<Place> find(const std::string& path, const std::optional<FileUser>& user = {});

  // As long as it exists, this thread has the rights to use here.
  ActAs rights() const { return ActAs(acts_as_); }
  const std::optional<FileUser>& rights_of() const { return acts_as_; }
  int folder() const { return folder_.get(); }
  const std::string& name() const { return name_; }
  // For functions that take only a path. `name`: of another file of the folder.
  std::string path(const std::string& name) const;
  std::string path() const { return path(name_); }

  // Another file of the folder, by its name. errno says why it failed.
  Descriptor open(const std::string& name, int flags, mode_t mode = 0600) const;
  bool remove(const std::string& name) const;
  bool rename(const std::string& from, const std::string& to) const;
  // Gives the user a file that root made here.
  bool give(int descriptor) const;

 private:
  Place() = default;

  Descriptor folder_;
  std::string name_;
  std::optional<FileUser> acts_as_;   // none: our own rights
  std::optional<FileUser> owned_by_;  // none: the process that makes it
};

}  // namespace phlox
