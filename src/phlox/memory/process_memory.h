// The memory of a live process, through process_vm_readv (one system call for many ranges). If the kernel
// lacks that call or a filter forbids it (ENOSYS, some seccomp profiles' EPERM), through /proc/PID/mem.
#pragma once

#include <sys/types.h>

#include <optional>

#include "phlox/base/descriptor.h"
#include "phlox/memory/remote_memory.h"

namespace phlox::memory {

class ProcessMemory : public RemoteMemory {
 public:
  explicit ProcessMemory(pid_t pid) : pid_(pid) {}

  size_t read(std::span<const Range> ranges) override;
  using RemoteMemory::read;

  // errno of the last read that got no bytes at all; 0: none yet. EFAULT is ordinary; EPERM and ESRCH are
  // not.
  int last_error() const { return last_error_; }

 private:
  size_t read_file(std::span<const Range> ranges);

  pid_t pid_;
  Descriptor file_;
  bool by_file_ = false;
  int last_error_ = 0;
};

}  // namespace phlox::memory
