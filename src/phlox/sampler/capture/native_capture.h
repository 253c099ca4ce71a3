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
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/process/thread_probe.h"
#include "phlox/process/thread_stop.h"
#include "phlox/sampler/capture/snapshot.h"
#include "phlox/sampler/observe/mode.h"
#include "phlox/sampler/observe/native_sample.h"
#include "phlox/unwind/unwinder.h"

namespace phlox::sampler {

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
  NativeParts parts();

 private:
  NativeHead head_;
  std::unique_ptr<std::byte[]> own_;  // the copy of a stack that was not read before
  const std::byte* stack_ = nullptr;
  std::vector<EvaluationStart> starts_;
  std::array<uint64_t, kMostKernelFrames> kernel_;
};

}  // namespace phlox::sampler
