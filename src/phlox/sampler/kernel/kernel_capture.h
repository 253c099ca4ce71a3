// The capture inside the kernel: loads the program (capture.bpf.c), runs it on the CPU clock of each CPU and
// at the scheduler's switches, and takes its records out of its ring. One for a recording, whatever the
// number of processes. Everything that it attached belongs to descriptors of ours: it ends with us, however
// we end. Used only by the recorder's thread; knows no thread and no Python.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "phlox/base/clock.h"
#include "phlox/base/result.h"
#include "phlox/sampler/kernel/wire.h"

namespace phlox::sampler {

// Why this program was built without it; empty: it was built with it.
const char* kernel_capture_missing();

// Whether it was built, and this kernel and our rights allow it, as far as that is visible without trying;
// otherwise an error with the reason. `retry`: the arguments of a new try, "record -p 4711".
Result<void> check_kernel_capture(const std::string& retry);

class KernelCapture {
 public:
  // `native`: with the native halves of stacks. `retry`: as above.
  static Result<std::unique_ptr<KernelCapture>> open(double rate_hz, bool native, const std::string& retry);
  virtual ~KernelCapture() = default;

  // How often a second each CPU is sampled.
  virtual void set_rate(double rate_hz) = 0;
  // The shortest wait that is reported by itself, and the shortest one for the GIL or a CPU; shorter ones are
  // reported as a sum.
  virtual void set_shortest_waits(Nanoseconds wait, Nanoseconds gil_wait) = 0;

  // From now on threads of this process are walked. `where.id` is set: everything about this process is sent
  // again. False: there is no room.
  virtual bool add(pid_t process, kernel_process& where) = 0;
  // The id is that of add(), or of a birth; if another program has it by now, it stays.
  virtual void remove(pid_t process, uint32_t id) = 0;
  // Its threads publish there which span of a trace they work for. `slot.id` as of add(): from the next one
  // on, it is not known any more.
  virtual bool set_slot(pid_t process, const kernel_slot& slot) = 0;
  // The facts about a thread that has been on a CPU since add().
  virtual std::optional<kernel_thread> thread(pid_t thread) = 0;

  // Calls `take` with each present record, until `deadline` or this many bytes. Returns whether there may be
  // more. The bytes are not checked (kernel_records.h).
  static constexpr size_t kAtOnce = size_t{256} << 10;
  virtual bool drain(Nanoseconds deadline, const std::function<void(std::span<const std::byte>)>& take) = 0;

  // Readable when a program has ended by execve, and at the first birth in KERNEL_NEWBORN_FOR; other records
  // wake no thread.
  virtual int descriptor() const = 0;

  // Sums of enum kernel_count.
  virtual uint64_t count(kernel_count what) = 0;
};

}  // namespace phlox::sampler
