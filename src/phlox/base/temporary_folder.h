// Where files are put that are gone with this program.
#pragma once

#include <cstdlib>
#include <string>

namespace phlox {

// $TMPDIR. Without that `otherwise`: /var/tmp for what may be large, since /tmp may be memory.
inline std::string temporary_folder(const char* otherwise = "/tmp") {
  const char* const folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != 0 ? folder : otherwise;
}

}  // namespace phlox
