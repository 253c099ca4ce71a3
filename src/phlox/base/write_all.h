// Writing all of some bytes to a descriptor, with a limit on how often an interrupted call is made again.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>

namespace phlox {

// False: errno says why. EINTR after so many interrupted calls in a row: a signal does not come that often,
// so something else refuses the call (a filter of system calls, a file system), and trying on would never
// end.
inline bool write_all(int fd, std::span<const std::byte> bytes) {
  constexpr int kMostInterrupted = 1000;
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
