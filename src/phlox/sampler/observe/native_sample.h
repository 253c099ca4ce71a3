// The native half of a sample, as bytes on the ring: registers, the copied C stack, where evaluations of the
// interpreter loop begin, and the kernel's frames. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "phlox/sampler/observe/mode.h"

namespace phlox::sampler {

// There are seldom more of the kernel's own frames: a page fault that reclaims memory for a file has some 40.
inline constexpr size_t kMostKernelFrames = 64;

// The data after a ThreadSample's locations on the ring, if it has a native half: this, `stack` bytes, then
// `groups` EvaluationStarts, then `kernel` addresses of 8 bytes.
struct NativeHead {
  uint64_t pc = 0, sp = 0, fp = 0, lr = 0, bx = 0;
  uint64_t stack_start = 0;
  uint32_t stack = 0;  // bytes, padded to 8
  uint32_t groups = 0;
  uint16_t kernel = 0;
  bool fp_known = false, lr_known = false, bx_known = false;
  NativeSource source = NativeSource::automatic;
};

// One evaluation of the interpreter loop begins at this position of the stack (root first): with the address
// of its anchor on the C stack, if there is one (merge.h).
struct EvaluationStart {
  uint64_t anchor = 0;
  uint32_t position = 0;
  uint32_t raw = 0;  // the index of its walked frame; for the sampler only
};

// All of it, in the order of the ring.
struct NativeParts {
  std::span<const std::byte> head, stack, starts, kernel;
};

// Parsed from a record; nothing if the bytes are invalid.
struct NativeSample {
  NativeHead head;
  std::span<const std::byte> stack;
  std::vector<EvaluationStart> starts;
  std::vector<uint64_t> kernel;
};
bool parse_native_sample(std::span<const std::byte> bytes, NativeSample& into);

}  // namespace phlox::sampler
