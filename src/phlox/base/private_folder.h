// A folder for what we keep between runs: only the user's own, files in it written whole or not at all, and
// those that were not used for longest thrown away when it grows too large.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "phlox/base/descriptor.h"

namespace phlox {

// All of it can be made again; a user who looks at many programs keeps the disk.
inline constexpr size_t kMostKept = size_t{256} << 20;

// Makes the folder and what lies above it, each only for the user. False: it cannot be made, is somebody
// else's, or is open to others' writing.
bool make_private_folder(const std::string& folder);

// A temporary file, then a rename. Mode 0600.
bool write_whole_file(const std::string& folder, const std::string& name, std::span<const std::byte> bytes);

// Throws away plain files of the folder, those first that were not used for longest, until it holds `most`
// bytes or less. Reads the whole folder: for the end of a recording, not of a look.
void keep_within(const std::string& folder, size_t most = kMostKept);

// To be read, by us only if we wrote it; its time of change becomes that of its last use, to the day. None:
// it is not there, is no plain file of ours, or is larger than `largest`.
Descriptor open_kept_file(const std::string& folder, const std::string& name, size_t largest);

}  // namespace phlox
