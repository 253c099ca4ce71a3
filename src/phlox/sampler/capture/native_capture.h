// The native half of a sample: registers and the bytes of the stack, of the same moment as the Python half.
// One interface with three sources, which differ in how they hold a thread while both are read, and in its
// registers:
//   perf     a CPU-clock event of the thread has just woken us on its CPU (perf_source.h);
//   ptrace   it is stopped for some microseconds;
//   syscall  it is blocked in a system call, and the kernel shows where.
// Called by the worker that holds the turn lock. Unwinds nothing, names nothing: the consumer does
// (native_stacks.h).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/process/thread_probe.h"
#include "phlox/process/thread_stop.h"
#include "phlox/sampler/capture/snapshot.h"
#include "phlox/unwind/unwinder.h"

namespace phlox::sampler {

// There are seldom more of the kernel's own frames: a page fault that reclaims memory for a file has some 40.
inline constexpr size_t kMostKernelFrames = 64;

// The requested source. automatic: the first of perf and ptrace that the host allows, and always syscall for
// blocked threads. kernel: the capture inside the kernel, with everything else (Mode::kernel).
enum class NativeSource : uint8_t { automatic, perf, ptrace, syscall, kernel };
std::string_view describe(NativeSource source);

class NativeCapture {
 public:
  // running: not at this attempt; later: not in this turn.
  enum class Held : uint8_t { yes, running, later, gone, refused };

  virtual ~NativeCapture() = default;
  // Holds the thread, if this source does so, and returns its registers at that moment.
  virtual Held hold(pid_t tid, process::ThreadProbe& probe, unwind::Registers& registers) = 0;
  // After everything was read. Does nothing for a thread that was not held.
  virtual void let_go() = 0;
  // The kernel's addresses, innermost first, if the thread was in the kernel and the host lets us see them;
  // of the last hold().
  virtual std::span<const uint64_t> kernel_frames() const { return {}; }
  // Whether the caller has to prove that the thread did not run between hold() and let_go().
  virtual bool needs_proof() const = 0;
};

class StopCapture : public NativeCapture {
 public:
  StopCapture(pid_t pid, process::StopCounts& counts) : pid_(pid), counts_(counts) {}
  Held hold(pid_t tid, process::ThreadProbe& probe, unwind::Registers& registers) override;
  void let_go() override { stop_.reset(); }
  bool needs_proof() const override { return false; }

 private:
  pid_t pid_;
  process::StopCounts& counts_;
  std::optional<process::ThreadStop> stop_;
};

class BlockedCapture : public NativeCapture {
 public:
  Held hold(pid_t tid, process::ThreadProbe& probe, unwind::Registers& registers) override;
  void let_go() override {}
  bool needs_proof() const override { return true; }
  // The kernel's answer at the last hold().
  const process::BlockedIn& last() const { return last_; }

 private:
  process::BlockedIn last_;
};

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

// The place of glibc's thread data, at the top of its stack. Nothing else between would end a copy: another
// thread's stack or heap often follows. x86-64: tcbhead_t holds its own address as `tcb` and, 16 bytes on, as
// `self` (sysdeps/x86_64/nptl/tls.h, 2.3 to 2.41), aligned to 64 bytes. 0: not there.
uint64_t thread_control_block(std::span<const std::byte> stack, uint64_t start);

// The copy itself; reused for every sample.
class NativeCopy {
 public:
  // A stack is copied up to this many bytes from its red zone on: 95 % of those of a Python with scikit-learn
  // take less than 40 KiB. The unwinder reports the rest as missing.
  static constexpr size_t kMostStack = 128 * 1024;

  NativeCopy();

  void clear();
  // The range that take() will copy if the stack's end is known; otherwise empty.
  static ByteRange stack_range(RemoteAddress sp, uint64_t end);
  // Copies the stack while the thread is held. `kernel`: see kernel_frames(). `end`: the end of its stack, as
  // learnt in its last sample (0: not yet). `have`: the bytes of stack_range(), if they were read with
  // something else and stay until parts() have been used; nullptr: not read yet.
  bool take(memory::RemoteMemory& memory, const unwind::Registers& registers, NativeSource source,
            std::span<const uint64_t> kernel, uint64_t& end, const std::byte* have = nullptr);
  void add_start(const EvaluationStart& start);
  std::vector<EvaluationStart>& starts() { return starts_; }
  // Everything, in the order of the ring.
  struct Parts {
    std::span<const std::byte> head, stack, starts, kernel;
  };
  Parts parts();

 private:
  NativeHead head_;
  std::unique_ptr<std::byte[]> own_;  // the copy of a stack that was not read before
  const std::byte* stack_ = nullptr;
  std::vector<EvaluationStart> starts_;
  std::array<uint64_t, kMostKernelFrames> kernel_;
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
