// A folder for what we keep between runs: only the user's own, and files in it written whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace phlox {

// Makes the folder and what lies above it, each only for the user. False: it cannot be made, is somebody
// else's, or is open to others' writing.
bool make_private_folder(const std::string& folder);

// A temporary file, then a rename. Mode 0600.
bool write_whole_file(const std::string& folder, const std::string& name, std::span<const std::byte> bytes);

}  // namespace phlox
