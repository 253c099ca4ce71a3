// What tells a file from another at the same place: wheels often have no build-id.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace phlox {

// Lower-case hex, 72 digits or more: device, inode, size, time of the last change.
inline std::string file_identity(const struct stat& s) {
  return fmt::format("{:016x}{:016x}{:016x}{:016x}{:08x}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec,
                     s.st_mtim.tv_nsec);
}

// Whether nobody but root and we can have written a file.
inline bool is_written_by_us(const struct stat& s) {
  return S_ISREG(s.st_mode) && (s.st_uid == 0 || s.st_uid == ::geteuid()) && (s.st_mode & 022) == 0;
}

}  // namespace phlox
