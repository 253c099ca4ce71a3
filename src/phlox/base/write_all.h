// Writes all of some bytes to a descriptor, with a limit on how often an interrupted call is repeated.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>

#include "phlox/base/interrupted.h"

namespace phlox {

// False: errno says why; EINTR after kMostInterrupted calls.
inline bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = retried([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (written < 0) return false;
    if (written == 0) {
      errno = EIO;
      return false;
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace phlox
