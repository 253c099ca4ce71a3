// What tells a file from another at the same place: wheels often have no build-id.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>

#include <string>

namespace phlox {

// Lower-case hex, 72 digits or more: device, inode, size, time of the last change.
inline std::string file_identity(const struct stat& s) {
  return fmt::format("{:016x}{:016x}{:016x}{:016x}{:08x}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec,
                     s.st_mtim.tv_nsec);
}

}  // namespace phlox
