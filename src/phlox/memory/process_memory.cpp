#include "phlox/memory/process_memory.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "phlox/memory/living_thread.h"

namespace phlox::memory {

size_t ProcessMemory::read(std::span<const Range> ranges) {
  if (ranges.empty()) return 0;
  if (by_file_) return read_file(ranges);
  std::array<iovec, kMaxRanges> local;
  std::array<iovec, kMaxRanges> remote;
  const size_t count = std::min(ranges.size(), kMaxRanges);
  for (size_t i = 0; i < count; ++i) {
    local[i] = {ranges[i].into.data(), ranges[i].into.size()};
    remote[i] = {reinterpret_cast<void*>(ranges[i].address.value), ranges[i].into.size()};  // NOLINT
  }
  const ssize_t got = ::process_vm_readv(pid_, local.data(), count, remote.data(), count, 0);
  if (got < 0) {
    last_error_ = errno;
    // ESRCH: the process has ended, or only its first thread has, whose id the call takes.
    if (errno == ENOSYS || errno == EPERM || (errno == ESRCH && living_thread(pid_) != pid_)) {
      const size_t whole = read_file(ranges);
      if (whole > 0) by_file_ = true;
      return whole;
    }
    return 0;
  }
  auto left = static_cast<size_t>(got);
  size_t whole = 0;
  while (whole < count && left >= ranges[whole].into.size()) left -= ranges[whole++].into.size();
  return whole;
}

size_t ProcessMemory::read_file(std::span<const Range> ranges) {
  if (!file_) {
    file_ = Descriptor(::open((proc_folder(pid_) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_) {
      last_error_ = errno;
      return 0;
    }
  }
  size_t whole = 0;
  for (const Range& range : ranges) {
    const ssize_t got =
        ::pread(file_.get(), range.into.data(), range.into.size(), static_cast<off_t>(range.address.value));
    if (got < 0) last_error_ = errno;
    if (got != static_cast<ssize_t>(range.into.size())) return whole;
    ++whole;
  }
  return whole;
}

}  // namespace phlox::memory
