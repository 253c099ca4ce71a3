// The threads of a process that run no Python: pools of BLAS, Rayon, Tokio, a program's own. Sampled like the
// others, with native frames only. Called by the worker that holds the turn lock; samples leave through the
// ring.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/process/thread_probe.h"
#include "phlox/sampler/capture/attempts.h"
#include "phlox/sampler/capture/native_half.h"
#include "phlox/sampler/capture/observed_thread.h"

namespace phlox::sampler {

class NativeThreads {
 public:
  struct Numbers {
    uint64_t samples = 0;
    uint64_t retried = 0;
    uint64_t rejected = 0;  // moved in every attempt, or without a native half
  };

  NativeThreads(pid_t pid, memory::RemoteMemory& memory, SampleLog& log, NativeHalf& native)
      : pid_(pid), memory_(memory), log_(log), native_(native) {}

  // `tick`: the round, as in the turn of the other threads. `is_python`: whether the thread is sampled
  // elsewhere. Stops at `deadline`, but samples at least one thread.
  void turn(uint64_t tick, Nanoseconds now, Nanoseconds deadline,
            const std::function<bool(pid_t)>& is_python);
  void flush();
  void finish(Nanoseconds now);

  const Numbers& numbers() const { return numbers_; }
  size_t size() const { return slots_.size(); }
  // Threads of the kernel inside the process, which have no stack of the program (process::is_kernel_worker).
  size_t kernel_workers() const { return kernel_workers_.size(); }
  // Threads of a dump (NativeHalf::sampled_once()) that have no sample yet.
  size_t unseen() const;

 private:
  struct Slot : ObservedThread {
    pid_t tid = 0;
  };

  void list(Nanoseconds now, const std::function<bool(pid_t)>& is_python);
  void sample(Slot& slot, Nanoseconds now);
  Attempted read_once(Slot& slot, Nanoseconds now, int number);
  void accept(Slot& slot, const process::SchedStat& stat, Nanoseconds now, bool unproved);
  void did_not_run(Slot& slot, const process::SchedStat& stat, Nanoseconds now);
  void reject(Slot& slot, Nanoseconds now);
  bool is_over(const Slot& slot) const;
  void drop_dead(Nanoseconds now);

  pid_t pid_;
  memory::RemoteMemory& memory_;
  SampleLog& log_;
  NativeHalf& native_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::unordered_set<pid_t> kernel_workers_;
  Numbers numbers_;
  uint32_t next_ = 0;
  uint64_t tick_ = 0;
  size_t first_ = 0;  // the first thread of the next turn
  Nanoseconds next_list_ = 0;
};

}  // namespace phlox::sampler
