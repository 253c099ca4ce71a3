// Native halves of looks that the capture inside the kernel has sent, until the look comes that each belongs
// to; and what the consumer is given of one. Registers, stack bytes and the kernel's frames travel on as they
// are; where evaluations of the interpreter loop begin is told by the frames that were walked, or by the
// CFrames on the copied stack. Pure. Called by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "phlox/python/layout.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/kernel/kernel_records.h"

namespace phlox::sampler {

// Of the Python frames of a look as they go to the consumer, root first, which locations are none.
struct StackShape {
  size_t locations = 0;
  size_t markers = 0;   // the first so many
  size_t left_out = 0;  // frames; the location before the last KERNEL_MAX_FRAMES / 2 says so
};

// Root first. `state`: the thread's PyThreadState.
void find_starts(const python::Layout& layout, const KernelNative& native, uint64_t state,
                 const StackShape& shape, std::vector<EvaluationStart>& starts);

class NativeHalves {
 public:
  // Of which registers it has: those of an interrupt are all there, of who was blocked the kernel tells two.
  enum class Registers : uint8_t { all, ip_and_sp };
  // Keeps a copy.
  void take(const KernelNative& record, Registers registers = Registers::all);
  void forget(pid_t thread);

  // Of the look that names it by this time; what travels over the ring after its locations. Of no size: it
  // was lost, or another came after it. Stays until the next call.
  NativeCopy::Parts parts(const python::Layout& layout, const kernel_look& look, const StackShape& shape);

 private:
  struct Half {
    kernel_native half{};
    std::vector<std::byte> bytes;
    Registers registers = Registers::all;
  };
  // The last that a thread was found with on a CPU, that it left one with, and that it is still said of that
  // it left one with.
  enum Which { found, left, still };
  std::unordered_map<pid_t, std::array<Half, 3>> halves_;
  size_t kept_ = 0;  // bytes of all of them
  NativeHead head_;
  std::vector<EvaluationStart> starts_;
};

}  // namespace phlox::sampler
