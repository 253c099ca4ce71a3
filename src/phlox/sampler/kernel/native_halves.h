// Native halves from the capture inside the kernel, until their samples arrive, and the form in which the
// consumer gets one. Registers, stack bytes and the kernel's frames are passed on unchanged; the beginnings
// of evaluations of the interpreter loop come from the walked frames, or from the CFrames on the copied
// stack. Pure. Called by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "phlox/python/layout.h"
#include "phlox/sampler/kernel/kernel_records.h"
#include "phlox/sampler/observe/native_sample.h"

namespace phlox::sampler {

// The locations that are no frames, among the Python frames of a sample as they go to the consumer, root
// first.
struct StackShape {
  size_t locations = 0;
  size_t markers = 0;   // the first this many
  size_t left_out = 0;  // frames; the location before the last KERNEL_MAX_FRAMES / 2 marks them
};

// Root first. `state`: the thread's PyThreadState.
void find_starts(const python::Layout& layout, const KernelNative& native, uint64_t state,
                 const StackShape& shape, std::vector<EvaluationStart>& starts);

class NativeHalves {
 public:
  // How many registers it has: an interrupt has all; for a blocked thread the kernel has two.
  enum class Registers : uint8_t { all, ip_and_sp };
  // Keeps a copy.
  void take(const KernelNative& record, Registers registers = Registers::all);
  void forget(pid_t thread);

  // The half that the sample names by this time: the data after its locations on the ring. Empty: it was
  // lost, or another came after it. Valid until the next call.
  NativeParts parts(const python::Layout& layout, const kernel_sample& sample, const StackShape& shape);

 private:
  struct Half {
    kernel_native half{};
    std::vector<std::byte> bytes;
    Registers registers = Registers::all;
  };
  // The last halves: on a CPU, when it left one, and the one that is still reported for that.
  enum Which { found, left, still };
  std::unordered_map<pid_t, std::array<Half, 3>> halves_;
  size_t kept_ = 0;  // bytes of all of them
  NativeHead head_;
  std::vector<EvaluationStart> starts_;
};

}  // namespace phlox::sampler
