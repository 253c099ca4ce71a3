// A folder for data that we keep between runs: only the user's own, with files that are complete or absent.
// The least recently used files are deleted when it grows too large.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "phlox/base/descriptor.h"

namespace phlox {

// All of it can be rebuilt, so a user who records many programs keeps the disk free.
inline constexpr size_t kMostKept = size_t{256} << 20;

// Makes the folder and its parents, each only for the user. False: it cannot be made, belongs to another
// user, or others may write into it.
bool make_private_folder(const std::string& folder);

// A temporary file, then a rename. Mode 0600.
bool write_whole_file(const std::string& folder, const std::string& name, std::span<const std::byte> bytes);

// Deletes plain files of the folder, the least recently used first, until it holds `most` bytes or less.
// Reads the whole folder: call it at the end of a recording, not for each sample.
void keep_within(const std::string& folder, size_t most = kMostKept);

// Opens a file for reading, only if we wrote it. Sets its time of change to that of its last use, to the day.
// None: it does not exist, is no plain file of ours, or is larger than `largest`.
Descriptor open_kept_file(const std::string& folder, const std::string& name, size_t largest);

}  // namespace phlox
