#include "phlox/base/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "phlox/base/clock.h"
#include "phlox/base/interrupted.h"

namespace phlox {
namespace {

bool copy_all(int from, int to) {
  if (::lseek(from, 0, SEEK_SET) != 0) return false;
  for (;;) {
    const ssize_t sent = retried([&] { return ::sendfile(to, from, nullptr, size_t{1} << 20); });
    if (sent <= 0) return sent == 0;
  }
}

}  // namespace

NewFile NewFile::make(const std::string& path, const std::optional<FileUser>& user) {
  NewFile made;
  made.place_ = Place::find(path, user);
  if (!made.place_) return made;
  const ActAs as = made.place_->rights();
  const int folder = made.place_->folder();
  made.file_ = Descriptor(::openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  // Some network and overlay file systems do not support it; an old kernel takes O_TMPFILE for the folder
  // alone.
  if (!made.file_ && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    if (::faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) != 0) return made;
    made.in_memory_ = true;
    made.file_ = Descriptor(::memfd_create("phlox", MFD_CLOEXEC));
  }
  return made;
}

NewFile::NewFile(NewFile&& other) noexcept
    : place_(std::move(other.place_)),
      name_(std::exchange(other.name_, {})),
      in_memory_(other.in_memory_),
      file_(std::move(other.file_)) {}

NewFile::~NewFile() {
  if (!name_.empty()) place_->remove(name_);
}

bool NewFile::put_in_place(mode_t mode, const std::string& meanwhile) {
  const ActAs as = place_->rights();
  if (!as) return false;
  const int folder = place_->folder();
  if (!meanwhile.empty()) place_->remove(meanwhile);
  const std::string name =
      !meanwhile.empty() ? meanwhile : fmt::format("{}.{}-{:x}", place_->name(), ::getpid(), clock_now());
  if (in_memory_) {
    Descriptor named = place_->open(name, O_CREAT | O_EXCL | O_WRONLY);
    if (!named) return false;
    name_ = name;
    if (!copy_all(file_.get(), named.get())) return false;
    file_ = std::move(named);
  }
  if (::fchmod(file_.get(), mode) != 0 || !place_->give(file_.get())) return false;
  if (!in_memory_) {
    const std::string nameless = fmt::format("/proc/self/fd/{}", file_.get());
    const auto link_to = [&](const std::string& to) {
      return ::linkat(AT_FDCWD, nameless.c_str(), folder, to.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    if (link_to(place_->name())) return true;
    // rename() replaces an existing file, linkat() does not: for a moment the complete file has another name.
    if (errno != EEXIST || !link_to(name)) return false;
    name_ = name;
  }
  if (!place_->rename(name_, place_->name())) return false;
  name_.clear();
  return true;
}

}  // namespace phlox
