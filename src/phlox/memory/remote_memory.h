// Bytes of a target. The reader asks for ranges, and does not know their source (a live process, a snapshot
// on disk, a fake interpreter built in a test). Never writes to a target. Never throws for an unreadable
// page: not getting bytes is normal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "phlox/base/address.h"

namespace phlox::memory {

struct Range {
  RemoteAddress address;
  std::span<std::byte> into;
};

class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;

  // Reads the ranges in order, in one system call if the source allows it (at most kMaxRanges of them).
  // Returns how many ranges were filled completely, counted from the first; the contents of the others are
  // undefined.
  virtual size_t read(std::span<const Range> ranges) = 0;

  bool read(RemoteAddress address, std::span<std::byte> into) {
    const Range range{address, into};
    return read(std::span<const Range>(&range, 1)) == 1;
  }
  template <class T>
  bool read_value(RemoteAddress address, T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return read(address, std::as_writable_bytes(std::span<T>(&value, 1)));
  }

  // IOV_MAX of Linux (include/uapi/linux/uio.h: UIO_MAXIOV).
  static constexpr size_t kMaxRanges = 1024;
};

}  // namespace phlox::memory
