// Identifies a file by facts that its owner cannot set. Files kept between runs use it as their key.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <string>

namespace phlox {

// Lower-case hex, 104 digits or more: device, inode, size, times of the last write and the last change,
// owner. The time of the last change is the kernel's own: no owner can set it.
inline std::string file_identity(const struct stat& s) {
  return fmt::format("{:016x}{:016x}{:016x}{:016x}{:08x}{:016x}{:08x}{:08x}", s.st_dev, s.st_ino, s.st_size,
                     s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec, s.st_uid);
}

// Whether only root and we can have written a file: results from such a file may be kept.
inline bool is_written_by_us(const struct stat& s) {
  return S_ISREG(s.st_mode) && (s.st_uid == 0 || s.st_uid == ::geteuid()) && (s.st_mode & 022) == 0;
}

// The identity of an open file; empty: its file system is a program (FUSE), which may say anything.
inline std::string file_identity_of(int file) {
  constexpr long kFuse = 0x65735546;  // FUSE_SUPER_MAGIC, include/uapi/linux/magic.h
  struct stat s {};
  struct statfs system {};
  if (::fstat(file, &s) != 0 || ::fstatfs(file, &system) != 0 || system.f_type == kFuse) return {};
  return file_identity(s);
}

// The same of a file whose results may be kept; empty also: someone else may have written it.
inline std::string kept_identity(int file) {
  struct stat s {};
  if (::fstat(file, &s) != 0 || !is_written_by_us(s)) return {};
  return file_identity_of(file);
}

}  // namespace phlox
