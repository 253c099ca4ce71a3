// The user with whose rights a thread of ours uses files. Root that writes into somebody's folder, or reads
// what a program names, would otherwise do there what that user may not.
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

// As long as this is there, the calling thread opens, creates and removes files with the rights of the user,
// and without the capabilities that pass over the rights of files. Of the calling thread alone.
class ActAs {
 public:
  // None: nothing changes.
  explicit ActAs(const std::optional<FileUser>& user);
  ~ActAs();
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;
  // False: we may not become that user, and the rights are what they were. errno is EPERM.
  explicit operator bool() const { return done_; }

 private:
  void become(const FileUser& user);
  void go_back();

  bool done_ = true, changed_ = false;
  FileUser before_;
  uint32_t effective_[2] = {};
};

}  // namespace phlox
