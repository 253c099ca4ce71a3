// The user with whose rights one of our threads uses files. Without it, root that writes into another user's
// folder, or reads a file that a program names, could do there what that user may not.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace phlox {

struct FileUser {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups = {};  // supplementary

  friend bool operator==(const FileUser&, const FileUser&) = default;
};

// As long as this object exists, the calling thread opens, creates and removes files with the rights of the
// user, and without the capabilities that override the rights of files. Only the calling thread.
class ActAs {
 public:
  // None: nothing changes.
  explicit ActAs(const std::optional<FileUser>& user);
  ~ActAs();
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;
  // False: we may not become that user, and the rights are unchanged. errno is EPERM.
  explicit operator bool() const { return done_; }

 private:
  void become(const FileUser& user);
  void go_back();

  bool done_ = true, changed_ = false;
  FileUser before_;
  uint32_t effective_[2] = {};
};

}  // namespace phlox
