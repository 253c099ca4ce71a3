// The folder for files that do not outlive this program.
#pragma once

#include <cstdlib>
#include <string>

namespace phlox {

// $TMPDIR. If not set, `otherwise`: /var/tmp for large files, because /tmp may be memory.
inline std::string temporary_folder(const char* otherwise = "/tmp") {
  const char* const folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != 0 ? folder : otherwise;
}

}  // namespace phlox
