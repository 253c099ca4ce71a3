#include "phlox/base/place.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace phlox {
namespace {

constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

bool may_write(const Descriptor& folder) {
  return ::faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) == 0;
}

// Whether only root decides what a folder contains; with the sticky bit, what root has put there stays.
bool is_of_root(const Descriptor& folder) {
  struct stat there {};
  if (!folder || ::fstat(folder.get(), &there) != 0) return false;
  return there.st_uid == 0 && ((there.st_mode & 022) == 0 || (there.st_mode & S_ISVTX) != 0);
}

// A link that root has created in a folder where only root can; empty: there is none.
std::string link_of_root(const Descriptor& folder, const std::string& name) {
  struct stat there {};
  char text[4096];
  if (::fstatat(folder.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISLNK(there.st_mode) ||
      there.st_uid != 0)
    return {};
  const ssize_t size = ::readlinkat(folder.get(), name.c_str(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

// Down from "/", part by part, through folders that only root can change.
Descriptor open_folder_of_root(const std::string& folder) {
  constexpr int kMostLinks = 8;
  char here[4096];
  if (folder.front() != '/' && ::getcwd(here, sizeof here) == nullptr) return {};
  std::string path = folder.front() == '/' ? folder : std::string(here) + "/" + folder;
  Descriptor at(::open("/", kFolder));
  int links = 0;
  while (at && !path.empty()) {
    const std::string part = path.substr(0, path.find('/'));
    path.erase(0, part.size() + 1);
    if (part.empty() || part == ".") continue;
    if (!is_of_root(at)) break;
    Descriptor next(::openat(at.get(), part.c_str(), kFolder | O_NOFOLLOW));
    if (next) {
      at = std::move(next);
      continue;
    }
    const std::string link = link_of_root(at, part);
    if (link.empty() || ++links > kMostLinks) {
      if (errno == ENOTDIR) errno = EACCES;  // another user's link
      return {};
    }
    path = link + "/" + path;
    if (link.front() == '/') at = Descriptor(::open("/", kFolder));
  }
  if (at && path.empty() && is_of_root(at)) return at;
  errno = EACCES;
  return {};
}

}  // namespace

std::optional<Place> Place::find(const std::string& path, const std::optional<FileUser>& user) {
  Place place;
  const std::string folder = folder_of(path);
  place.name_ = path.substr(path.rfind('/') + 1);
  if (place.name_.empty() || place.name_ == "." || place.name_ == "..") {
    errno = EISDIR;
    return {};
  }
  {
    const ActAs as(user);
    if (as) place.folder_ = Descriptor(::open(folder.c_str(), kFolder));
    if (place.folder_ && (!user || may_write(place.folder_))) place.acts_as_ = user;
    if (!as || (!place.folder_ && (!user || errno != EACCES))) return {};
  }
  if (user && !place.acts_as_) {
    place.folder_ = open_folder_of_root(folder);
    place.owned_by_ = user;
    if (!place.folder_) return {};
  }
  return place;
}

std::string Place::path(const std::string& name) const {
  return fmt::format("/proc/self/fd/{}/{}", folder_.get(), name);
}

Descriptor Place::open(const std::string& name, int flags, mode_t mode) const {
  const ActAs as(acts_as_);
  if (!as) return {};
  return Descriptor(::openat(folder_.get(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode));
}

bool Place::remove(const std::string& name) const {
  const ActAs as(acts_as_);
  return as && ::unlinkat(folder_.get(), name.c_str(), 0) == 0;
}

bool Place::rename(const std::string& from, const std::string& to) const {
  const ActAs as(acts_as_);
  return as && ::renameat(folder_.get(), from.c_str(), folder_.get(), to.c_str()) == 0;
}

bool Place::give(int descriptor) const {
  return !owned_by_ || ::fchown(descriptor, owned_by_->user, owned_by_->group) == 0;
}

}  // namespace phlox
