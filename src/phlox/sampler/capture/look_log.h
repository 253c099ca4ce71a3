// What was seen of threads goes out to the consumer: one record a look, several alike joined and held back
// for a tenth of a second, of each stack what differs from the one before. Whoever looks at threads has one
// of these, whether they run Python or not; it does not know how a thread was held or read. Called by the
// worker that holds the turn lock.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/capture/perf_source.h"
#include "phlox/sampler/capture/records.h"
#include "phlox/sampler/capture/ring.h"
#include "phlox/target/thread_probe.h"

namespace phlox::sampler {

// A thread that is looked at: what the kernel says of it, and what the consumer knows.
struct ObservedThread {
  uint32_t index = 0;  // never reused
  std::unique_ptr<target::ThreadProbe> probe;
  bool alive = true;
  EventState event;                       // in this turn
  target::SchedStat seen;                 // at the last look
  bool was_blocked = false;               // then, in a system call, proved
  uint64_t blocked_since = 0;             // `event.last` of that look; 0: it had no event
  uint32_t idle_looks = 0;                // in which it had not run
  uint32_t vain_looks = 0;                // rejected ones since the last that was not
  uint64_t last_tick = 0, next_tick = 0;  // at which it was, and will be, looked at
  Nanoseconds last_time = 0;
  Nanoseconds cpu_carried = 0;  // used, and not yet charged to a stack
  uint64_t c_stack_end = 0;     // as learnt; native halves only

  bool has_stack = false;           // the last look is one that the next may be compared with
  std::vector<CodeLocation> stack;  // root first, as last sent
  LookRecord state;                 // states of the last one sent; looks 0: none, or it was rejected
  LookRecord more;                  // looks like that one, held back; looks 0: none

  // Since the last look, all the while.
  bool has_slept_on(const target::SchedStat& now) const {
    return has_stack && was_blocked && unmoved(now, seen) && !now.off();
  }
};

class LookLog {
 public:
  explicit LookLog(Ring& ring) : ring_(ring) {}

  void begin(const ThreadRecord& record) { push(record); }
  // False: there was no room.
  bool tell(const WakeRecord& record, const std::vector<CodeLocation>& stack) {
    return ring_.push(std::as_bytes(std::span(&record, 1)), std::as_bytes(std::span(stack)));
  }
  bool tell(const auto& record, std::string_view name) {
    return ring_.push(std::as_bytes(std::span(&record, 1)), std::as_bytes(std::span(name)));
  }
  // CPU time that was not charged yet goes to the last stack: the thread is never found running again.
  void end(ObservedThread& thread, Nanoseconds now);

  // `look` is sent with the CPU time that the thread carries, unless it is blocked: then that waits for the
  // next stack that it is found running with, or its waiting would be charged with it. `stat`: as of the
  // look, proved. `stack`: what was read, root first; nullptr: the thread has none. `native`: what follows a
  // fresh native half.
  void saw(ObservedThread& thread, LookRecord look, const target::SchedStat& stat, uint64_t tick,
           const std::vector<CodeLocation>* stack, const NativeCopy::Parts& native);
  // It has not run since the last look: one more like it, and those between that were spared. Gives how many.
  uint64_t did_not_run(ObservedThread& thread, const target::SchedStat& stat, uint64_t tick, Nanoseconds now);
  // A look that came to nothing: its time, and what the thread carries, go without a stack.
  void reject(ObservedThread& thread, profile::GilState gil, Nanoseconds now, Rejected why);
  // The same, where the look is made already.
  void reject(ObservedThread& thread, LookRecord look, Rejected why);
  // Sends what is held back.
  void flush(ObservedThread& thread);

  // Records that the consumer had no room for.
  uint64_t lost() const { return lost_; }

 private:
  void push(const auto& record) {
    if (!ring_.push(std::as_bytes(std::span(&record, 1)))) ++lost_;
  }
  void send(ObservedThread& thread, LookRecord look, const std::vector<CodeLocation>* new_stack,
            const NativeCopy::Parts& native);

  Ring& ring_;
  uint64_t lost_ = 0;
};

}  // namespace phlox::sampler
