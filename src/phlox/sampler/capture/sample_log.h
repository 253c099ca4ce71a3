// Sends the samples of threads to the consumer: one record for each sample, equal ones joined and held back
// for a tenth of a second, and only the part of a stack that differs from the last one. Python threads and
// native threads have one each; it does not know how a thread was held or read. Called by the worker that
// holds the turn lock.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/process/thread_probe.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/capture/perf_source.h"
#include "phlox/sampler/capture/records.h"
#include "phlox/sampler/capture/ring.h"

namespace phlox::sampler {

// A sampled thread: the kernel's facts about it, and the consumer's knowledge.
struct ObservedThread {
  uint32_t index = 0;  // never reused
  std::unique_ptr<process::ThreadProbe> probe;
  bool alive = true;
  EventState event;                       // in this turn
  process::SchedStat seen;                // at the last sample
  bool was_blocked = false;               // at that time, in a system call, proved
  uint64_t blocked_since = 0;             // `event.last` of that sample; 0: it had no event
  uint32_t idle_samples = 0;              // samples in which it had not run
  uint32_t empty_samples = 0;             // rejected samples since the last accepted one
  uint64_t last_tick = 0, next_tick = 0;  // of its last and its next sample
  Nanoseconds last_time = 0;
  Nanoseconds cpu_carried = 0;  // used, and not yet charged to a stack
  uint64_t c_stack_end = 0;     // as learnt; only with native stacks

  bool has_stack = false;           // the next sample may be compared with the last one
  std::vector<CodeLocation> stack;  // root first, as last sent
  ThreadSample state;               // states of the last one sent; samples 0: none, or it was rejected
  ThreadSample more;                // equal samples, held back; samples 0: none

  // Since the last sample, without interruption.
  bool has_slept_on(const process::SchedStat& now) const {
    return has_stack && was_blocked && unmoved(now, seen) && !now.off();
  }
};

class SampleLog {
 public:
  explicit SampleLog(Ring& ring) : ring_(ring) {}

  void begin(const ThreadRecord& record) { push(record); }
  // False: there was no room.
  bool write(const WakerRecord& record, const std::vector<CodeLocation>& stack) {
    return ring_.push(std::as_bytes(std::span(&record, 1)), std::as_bytes(std::span(stack)));
  }
  bool write(const auto& record, std::string_view name) {
    return ring_.push(std::as_bytes(std::span(&record, 1)), std::as_bytes(std::span(name)));
  }
  // CPU time that was not charged yet goes to the last stack: no sample will find the thread running again.
  void end(ObservedThread& thread, Nanoseconds now);

  // Sends `sample` with the CPU time that the thread carries, unless it is blocked: then that time waits for
  // the stack of the next sample that finds it running, because it does not belong to its waiting. `stat`: at
  // the sample, proved. `stack`: as read, root first; nullptr: the thread has none. `native`: the data after
  // a fresh native half.
  void saw(ObservedThread& thread, ThreadSample sample, const process::SchedStat& stat, uint64_t tick,
           const std::vector<CodeLocation>* stack, const NativeCopy::Parts& native);
  // It has not run since the last sample: one more equal sample, and those between that were not taken.
  // Returns how many.
  uint64_t did_not_run(ObservedThread& thread, const process::SchedStat& stat, uint64_t tick,
                       Nanoseconds now);
  // A failed sample: its time, and the time that the thread carries, have no stack.
  void reject(ObservedThread& thread, profile::GilState gil, Nanoseconds now, Rejected why);
  // The same, if the record exists already.
  void reject(ObservedThread& thread, ThreadSample sample, Rejected why);
  // Sends held-back samples.
  void flush(ObservedThread& thread);

  // Records that the consumer had no room for.
  uint64_t lost() const { return lost_; }

 private:
  void push(const auto& record) {
    if (!ring_.push(std::as_bytes(std::span(&record, 1)))) ++lost_;
  }
  void send(ObservedThread& thread, ThreadSample sample, const std::vector<CodeLocation>* new_stack,
            const NativeCopy::Parts& native);

  Ring& ring_;
  uint64_t lost_ = 0;
};

}  // namespace phlox::sampler
