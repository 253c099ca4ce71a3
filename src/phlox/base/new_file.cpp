#include "phlox/base/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "phlox/base/clock.h"

namespace phlox {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

bool copy_all(int from, int to) {
  if (::lseek(from, 0, SEEK_SET) != 0) return false;
  for (;;) {
    const ssize_t sent = ::sendfile(to, from, nullptr, size_t{1} << 20);
    if (sent == 0) return true;
    if (sent < 0 && errno != EINTR) return false;
  }
}

}  // namespace

NewFile NewFile::make(const std::string& path) {
  NewFile made(path);
  const std::string folder = folder_of(path);
  made.file_ = Descriptor(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  // Some network and overlay file systems have none; an old kernel takes O_TMPFILE for the folder alone.
  if (!made.file_ && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return made;
    made.in_memory_ = true;
    made.file_ = Descriptor(::memfd_create("phlox", MFD_CLOEXEC));
  }
  return made;
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      name_(std::exchange(other.name_, {})),
      in_memory_(other.in_memory_),
      file_(std::move(other.file_)) {}

NewFile::~NewFile() {
  if (!name_.empty()) ::unlink(name_.c_str());
}

bool NewFile::put_in_place(mode_t mode, const std::optional<std::pair<uid_t, gid_t>>& owner) {
  const std::string name = fmt::format("{}.{}-{:x}", path_, ::getpid(), clock_now());
  if (in_memory_) {
    Descriptor named(::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!named) return false;
    name_ = name;
    if (!copy_all(file_.get(), named.get())) return false;
    file_ = std::move(named);
  }
  if (::fchmod(file_.get(), mode) != 0) return false;
  if (owner && ::fchown(file_.get(), owner->first, owner->second) != 0) return false;
  if (!in_memory_) {
    const std::string nameless = fmt::format("/proc/self/fd/{}", file_.get());
    const auto link_to = [&](const std::string& to) {
      return ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    if (link_to(path_)) return true;
    // rename() replaces what is there, linkat() does not: for a moment the whole file has another name.
    if (errno != EEXIST || !link_to(name)) return false;
    name_ = name;
  }
  if (::rename(name_.c_str(), path_.c_str()) != 0) return false;
  name_.clear();
  return true;
}

}  // namespace phlox
