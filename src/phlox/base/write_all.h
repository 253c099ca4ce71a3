// Writing all of some bytes to a descriptor, with a limit on how often an interrupted call is made again.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>

namespace phlox {

// A signal does not interrupt that many calls in a row. Then something else refuses the call (a filter of
// system calls, a file system), and trying on would never end.
inline constexpr int kMostInterrupted = 1000;

// False: errno says why; EINTR after kMostInterrupted calls.
inline bool write_all(int fd, std::span<const std::byte> bytes) {
  for (int interrupted = 0; !bytes.empty();) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written > 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
      interrupted = 0;
    } else if (written == 0) {
      errno = EIO;
      return false;
    } else if (errno != EINTR || ++interrupted == kMostInterrupted) {
      return false;
    }
  }
  return true;
}

}  // namespace phlox
