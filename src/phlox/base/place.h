// Where a file is to be: an open folder and a name in it. Everything is done in that folder, whatever is put
// in the place of a folder on the path meanwhile, and with the rights of the user whom the file is for.
#pragma once

#include <fcntl.h>

#include <optional>
#include <string>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_user.h"

namespace phlox {

class Place {
 public:
  // `user`: whom the file is for (under sudo: the calling user). What that user may not write, root writes
  // only where nobody else can put a link on the path. None: errno says why not.
  static std::optional<Place> find(const std::string& path, const std::optional<FileUser>& user = {});

  // While it is there, this thread has the rights to use here.
  ActAs rights() const { return ActAs(acts_as_); }
  const std::optional<FileUser>& rights_of() const { return acts_as_; }
  int folder() const { return folder_.get(); }
  const std::string& name() const { return name_; }
  // For what takes a path alone. `name`: of another file of the folder.
  std::string path(const std::string& name) const;
  std::string path() const { return path(name_); }

  // Another file of the folder, by its name. errno says why not.
  Descriptor open(const std::string& name, int flags, mode_t mode = 0600) const;
  bool remove(const std::string& name) const;
  bool rename(const std::string& from, const std::string& to) const;
  // Gives a file that was made here to the user, who does not have it already when root made it.
  bool give(int descriptor) const;

 private:
  Place() = default;

  Descriptor folder_;
  std::string name_;
  std::optional<FileUser> acts_as_;   // none: as we are
  std::optional<FileUser> owned_by_;  // none: whoever makes it
};

}  // namespace phlox
