#include "phlox/sampler/native_half.h"

namespace phlox::sampler {

NativeHalf::NativeHalf(pid_t pid, NativeSource asked)
    : in_use_(asked == NativeSource::syscall ? NativeSource::syscall : NativeSource::ptrace), stop_(pid) {}

NativeCapture* NativeHalf::for_running() { return in_use_ == NativeSource::ptrace ? &stop_ : nullptr; }

void NativeHalf::refused() {
  if (!ever_held_) in_use_ = NativeSource::syscall;
}

}  // namespace phlox::sampler
