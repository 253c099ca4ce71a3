// Finds a file by a path whose folders other users may change. Whoever may rename entries of a folder chooses
// where the path leads, so it must not lead to what that user may not read.
#pragma once

#include <optional>
#include <string>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_user.h"

namespace phlox {

// Each component is opened by itself, in the folder that was opened before it, so that nothing can change
// between a check and its use, whatever the kernel's version.
//
// - A folder of root's or ours into which nobody else may write is trusted. Links are followed there.
// - From the first folder of another user on, root reads with the rights of that user, without groups.
// - Otherwise, and where several users may rename entries, no link is followed, and a file of root's or ours
//   counts only if all of them may read it. In a folder with the sticky bit only links are refused.
//
// A group with the number of its user counts as that user's alone, as pam_umask has it.
struct GuardedFile {
  enum class Refused {
    no,
    link,          // in a folder where others may have put it
    private_file,  // others may have moved it here
    rights,        // we cannot become the user to whom a folder belongs
  };
  Descriptor file;  // O_PATH; none: errno says why, or `refused` is set
  Refused refused = Refused::no;
  std::optional<FileUser> user;  // with whose rights to open it
};
// `user`: with whose rights the path is followed; none: ours.
GuardedFile find_guarded(const std::string& path, const std::optional<FileUser>& user);

}  // namespace phlox
