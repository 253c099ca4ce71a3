// The user with whose rights files that a process names are read.
#pragma once

#include <sys/types.h>

#include <optional>

#include "phlox/base/file_user.h"
#include "phlox/target/process_state.h"

namespace phlox::target {

// Of its ids the one that may least.
FileUser file_user_of(const Status& status);
// For ActAs. None: as we are, for that is what it may, or we cannot become anybody.
std::optional<FileUser> reading_user(const FileUser& user);
std::optional<FileUser> reading_user(pid_t pid);

// Whether a path leads a process where it leads us: the same mount namespace, the same root folder.
bool sees_our_files(pid_t pid);

}  // namespace phlox::target
