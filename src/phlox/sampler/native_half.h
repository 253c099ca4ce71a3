// The sampler thread's side of native stacks: which source holds a running thread, which a blocked one, and the copy that
// goes with the look being taken. Made when a recording asks for native frames; nothing of it runs otherwise.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/sampler/native_capture.h"
#include "phlox/sampler/records.h"
#include "phlox/sampler/ring.h"

namespace phlox::sampler {

class NativeHalf {
 public:
  NativeHalf(pid_t pid, NativeSource asked);

  // nullptr: nothing holds a running thread; its looks have no native half.
  NativeCapture* for_running();
  BlockedCapture& for_blocked() { return blocked_; }
  // The source for running threads was refused by the kernel. Once nothing was ever held, it is given up.
  void refused();
  void held() { ever_held_ = true; }
  // What holds running threads; syscall: nothing does.
  NativeSource in_use() const { return in_use_; }

  NativeCopy& copy() { return copy_; }
  void begin_look() {
    copy_.clear();
    fresh_ = false;
  }
  void taken() { fresh_ = true; }
  NativePart part() const { return fresh_ ? NativePart::fresh : NativePart::none; }
  std::span<const std::byte> bytes_for(NativePart part) {
    return part == NativePart::fresh ? copy_.bytes() : std::span<const std::byte>();
  }

 private:
  NativeSource in_use_;
  StopCapture stop_;
  BlockedCapture blocked_;
  NativeCopy copy_;
  bool fresh_ = false;
  bool ever_held_ = false;
};

}  // namespace phlox::sampler
