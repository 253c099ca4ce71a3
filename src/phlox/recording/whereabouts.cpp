#include "phlox/recording/whereabouts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace phlox::recording {
namespace {

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool leads_to(const std::string& path, const struct stat& file) {
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0 && is_same(there, file);
}

}  // namespace

bool is_in_place(const Descriptor& file, const Place& place) {
  struct stat opened {
  }, there{};
  if (!file || ::fstat(file.get(), &opened) != 0) return true;
  const ActAs as = place.rights();
  if (::fstatat(place.folder(), place.name().c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0)
    return is_same(opened, there);
  return errno != ENOENT;
}

std::string path_of(const Descriptor& file, const std::string& path) {
  struct stat opened {};
  if (!file || ::fstat(file.get(), &opened) != 0) return path;
  if (leads_to(path, opened)) return path;
  char text[4096];
  const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", file.get()).c_str(), text, sizeof text);
  if (size <= 0) return {};
  const std::string now(text, static_cast<size_t>(size));
  return leads_to(now, opened) ? now : std::string();
}

bool is_removed(const Descriptor& file) {
  struct stat opened {};
  return file && ::fstat(file.get(), &opened) == 0 && opened.st_nlink == 0;
}

}  // namespace phlox::recording
