// Sends the samples of threads to the consumer: one record for each sample, equal ones joined and held back
// for a tenth of a second, and only the part of a stack that differs from the last one. Does not know how a
// thread was held or read. Called by the writer of the ring.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/sampler/observe/cpu_charge.h"
#include "phlox/sampler/observe/native_sample.h"
#include "phlox/sampler/observe/records.h"
#include "phlox/sampler/observe/ring.h"

namespace phlox::sampler {

// What the consumer knows of a thread.
struct ReportedThread {
  uint32_t index = 0;  // never reused
  Nanoseconds last_time = 0;
  Nanoseconds cpu_carried = 0;  // used, and not yet charged to a stack
  CpuCharge charge;

  bool has_stack = false;           // the next sample may be compared with the last one
  std::vector<CodeLocation> stack;  // root first, as last sent
  ThreadSample sent;  // the last one; of its times only the number; samples 0: none, or it was rejected
  ThreadSample more;  // equal samples, held back; samples 0: none
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
  void end(ReportedThread& thread, Nanoseconds now);

  // Whether CPU time goes to this sample: not if the thread is blocked or ran elsewhere. Then it waits for
  // the next sample that finds the thread running, because it does not belong to its waiting.
  static bool charges(const ThreadSample& sample) {
    return sample.state.cpu_state != profile::CpuState::blocked && !sample.state.ran_elsewhere;
  }
  // Sends `sample`, with the CPU time that the thread carries if charges(). `stack`: as read, root first;
  // nullptr: the thread has none. `native`: the data after a fresh native half.
  void saw(ReportedThread& thread, ThreadSample sample, const std::vector<CodeLocation>* stack,
           const NativeParts& native);
  // It has not run since the last sample, `turns` ago: one more equal sample, and those between that were not
  // taken.
  void did_not_run(ReportedThread& thread, Nanoseconds now, uint64_t turns);
  // A failed sample: its time, and the time that the thread carries, have no stack.
  void reject(ReportedThread& thread, ThreadSample sample, Rejected why);
  // Sends held-back samples.
  void flush(ReportedThread& thread);

  // Records that the consumer had no room for.
  uint64_t lost() const { return lost_; }

 private:
  void push(const auto& record) {
    if (!ring_.push(std::as_bytes(std::span(&record, 1)))) ++lost_;
  }
  void send(ReportedThread& thread, ThreadSample sample, const std::vector<CodeLocation>* new_stack,
            const NativeParts& native);

  Ring& ring_;
  uint64_t lost_ = 0;
};

}  // namespace phlox::sampler
