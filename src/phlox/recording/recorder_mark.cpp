#include "phlox/recording/recorder_mark.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "phlox/recording/schema.h"

namespace phlox::recording {
namespace {

struct flock byte_lock(off_t byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

Descriptor mark(const Place& place, off_t byte) {
  Descriptor file = place.open(place.name(), O_RDWR);
  struct flock lock = byte_lock(byte);
  if (file) (void)::fcntl(file.get(), F_OFD_SETLK, &lock);
  return file;
}

bool is_marked(const Descriptor& file, off_t byte) {
  struct flock lock = byte_lock(byte);
  return file && ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace

Descriptor mark_as_growing(const Place& place) {
  return mark(place, kRecorderByte);
}

Descriptor mark_as_replaced(const Place& place) {
  return mark(place, kReplacerByte);
}

bool is_marked(const Descriptor& file) {
  return is_marked(file, kRecorderByte);
}

bool has_recorder(const Place& place) {
  const Descriptor file = place.open(place.name(), O_RDWR | O_NONBLOCK);
  return is_marked(file, kRecorderByte) || is_marked(file, kReplacerByte);
}

Descriptor lock_folder(const Place& place) {
  constexpr int kTries = 100;
  Descriptor folder(::openat(place.folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int tries = 0; folder && tries < kTries; ++tries) {
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
    ::usleep(10'000);
  }
  return folder;
}

std::optional<pid_t> user_of(const Place& place) {
  const Descriptor file = place.open(place.name() + "-shm", O_RDONLY);
  if (!file) return {};
  // SQLite's os_unix.c: UNIX_SHM_DMS, the byte that each user of the file locks.
  struct flock lock = byte_lock(128);
  if (::fcntl(file.get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return {};
  return lock.l_pid;
}

}  // namespace phlox::recording
