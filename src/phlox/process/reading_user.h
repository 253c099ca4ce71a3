// The user with whose rights phlox reads files that a process names.
#pragma once

#include <sys/types.h>

#include <optional>

#include "phlox/base/file_user.h"
#include "phlox/process/process_state.h"

namespace phlox::process {

// The one of its ids with the fewest rights.
FileUser file_user_of(const Status& status);
// For ActAs. None: as ourselves, because it has the same rights, or because we cannot change our user.
std::optional<FileUser> reading_user(const FileUser& user);
std::optional<FileUser> reading_user(pid_t pid);

// Whether a path means the same for a process as for us: the same mount namespace, the same root folder.
bool sees_our_files(pid_t pid);

}  // namespace phlox::process
