// Parses the records from the ring of the capture inside the kernel. The bytes are checked like any others:
// every count against its cap and the present bytes. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <variant>

#include "phlox/process/open_file.h"
#include "phlox/process/waits_for.h"
#include "phlox/python/code_object.h"
#include "phlox/sampler/kernel/wire.h"

namespace phlox::sampler {

// A frame: its code object, and the place in it.
struct KernelFrame {
  uint32_t serial = 0;  // 0: it was not sent
  uint32_t instruction = 0;
};

struct KernelSample {
  kernel_sample sample{};
  std::span<const std::byte> frames;  // none: they were sent before, or there are none
  process::WaitsFor waits_for;  // for a thread that is still off its CPU: no record of the kernel's has it
  bool has_frames() const { return (sample.stack.flags & KERNEL_FRAMES) != 0; }
  // The frames of sample.stack.count, if they are here; leaf first.
  KernelFrame frame(size_t index) const;
};

struct KernelCode {
  kernel_code code{};
  std::span<const std::byte> bytes;
};

// The native half of a sample that follows.
struct KernelNative {
  kernel_native half{};
  std::span<const std::byte> bytes;  // of its three parts

  std::span<const std::byte> kernel() const { return bytes.first(kernel_bytes()); }
  std::span<const std::byte> starts() const { return bytes.subspan(kernel_bytes(), starts_bytes()); }
  // From half.stack_start on.
  std::span<const std::byte> stack() const {
    return bytes.subspan(kernel_bytes() + starts_bytes(), half.stack);
  }
  size_t kernel_bytes() const { return half.kernel * sizeof(uint64_t); }
  size_t starts_bytes() const { return half.starts * sizeof(uint64_t); }
};

// The wait target of the next sample of that thread.
struct KernelWaitTarget {
  kernel_wait_target wait_target{};
  std::span<const std::byte> name;
};

// monostate: these bytes are no record.
using KernelRecord = std::variant<std::monostate, KernelSample, KernelCode, KernelNative, KernelWaitTarget,
                                  kernel_exit, kernel_exec, kernel_birth, kernel_signal, kernel_trace>;
KernelRecord parse_kernel_record(std::span<const std::byte> bytes);

// In the form of /proc and the tables of sockets.
process::NamedFile file_of(const KernelWaitTarget& record);

// In the form of python::capture_code(). Parts that did not fit into the record are truncated and marked.
// nullptr: it cannot be a code object of this layout.
std::unique_ptr<python::CodeCapture> capture_of(const python::Layout& layout, const KernelCode& record);

// As python::instruction_offset() returns it, for a frame whose code object is at `code`.
int32_t instruction_of(const python::Layout& layout, uint64_t code, uint32_t instruction);

}  // namespace phlox::sampler
