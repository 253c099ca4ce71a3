// Capture's side of native stacks: the source that holds a running thread, the source for a blocked one, and
// the copy for the current sample. Made if a recording asks for native frames; otherwise none of it runs.
// Called by the worker that holds the turn lock; wait() releases the lock.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/capture/perf_source.h"
#include "phlox/sampler/observe/plan.h"
#include "phlox/sampler/observe/records.h"
#include "phlox/sampler/observe/ring.h"

namespace phlox::sampler {

class NativeHalf {
 public:
  // `interval`: between two samples; 0: only one sample, which cannot wait for an event. `real_time`: our
  // class, in which waking up on a thread's CPU pre-empts it at once. `stops` counts the stops of this half,
  // and outlives it, as `workers` do.
  NativeHalf(pid_t pid, NativeSource asked, Nanoseconds interval, bool real_time, process::StopCounts& stops,
             Workers& workers);

  // Holds a thread: a blocked one where it is, a running one by the source in use. `waiting`: since its last
  // sample. `caught`: by an event just now, so it is not blocked. With Held::yes returns the source that must
  // release it. later: not in this turn; it keeps waiting, and its time with it.
  NativeCapture* hold(pid_t tid, process::ThreadProbe& probe, Nanoseconds waiting, bool caught,
                      unwind::Registers& registers, NativeCapture::Held& held);
  // The call in which the last hold() found it blocked; nullptr: it was running.
  const process::BlockedIn* blocked_in() const { return was_blocked_ ? &blocked_.last() : nullptr; }
  // The known state of a thread before any call; `waiting`: since its last sample. elsewhere: not in this
  // turn; it keeps waiting, and its time with it.
  EventState event_state(pid_t tid, Nanoseconds waiting);
  // The last CPU of a thread, if an event has it; otherwise -1.
  int cpu_of(pid_t tid) const { return perf_ ? perf_->cpu_of(tid) : -1; }
  // How many turns to skip a thread that never runs, if samples are so frequent that a reader of the
  // recording sees no difference.
  uint64_t longest_pause() const;
  bool sampled_once() const { return interval_asked_ == 0; }
  // The source that holds running threads; syscall: none does.
  NativeSource in_use() const { return in_use_; }
  NativeSource name_of(const NativeCapture* source) const {
    return source == &blocked_ ? NativeSource::syscall
           : source == &stop_  ? NativeSource::ptrace
                               : NativeSource::perf;
  }
  // A sample by this source is as sure as the schedule counts around it.
  bool proves(const NativeCapture* source) const {
    return granted_.scheduling == SchedulingClass::real_time || source == &stop_ || source == &blocked_;
  }

  // The thread that has waited longest; 0: none. Cleared by the call.
  pid_t take_longest_waiting();
  // Sleeps until an event of a thread on this worker's CPU wakes it, or until it is time to sample the
  // threads that no event catches.
  Woken wait(Worker& worker, Nanoseconds interval, TurnLock& turn_lock);
  // A thread that was sampled less than this long ago need not be sampled in this turn: every running thread
  // has events of its own, and each wakes us up for all threads.
  Nanoseconds soonest_again() const { return in_use_ == NativeSource::perf ? interval_ / 3 : 0; }
  // ThreadSample::ran.
  Nanoseconds ran_between(const process::SchedStat& before, const process::SchedStat& now) const {
    if (now.off()) return -1;
    const process::SchedStat since = now - before;
    return static_cast<Nanoseconds>(since.run_ns + since.wait_ns);
  }
  // Whether the thread that is held had left its CPU before it was stopped; nothing if that is not known.
  std::optional<bool> waited_for_cpu() const { return waited_for_cpu_; }
  EventNumbers events() const { return perf_ ? perf_->numbers() : EventNumbers(); }

  NativeCopy& copy() { return copy_; }
  void begin_sample() {
    copy_.clear();
    fresh_ = false;
  }
  void taken() { fresh_ = true; }
  NativePart part() const { return fresh_ ? NativePart::fresh : NativePart::none; }
  // The data after a ThreadSample's locations on the ring.
  NativeParts parts_for(NativePart part) { return part == NativePart::fresh ? copy_.parts() : NativeParts(); }

 private:
  NativeCapture* hold_running(pid_t tid, process::ThreadProbe& probe, Nanoseconds waiting,
                              unwind::Registers& registers, NativeCapture::Held& held);
  // A thread that job control has stopped, blocked by its system call file. That file has only two registers,
  // and a stop costs the thread nothing: there is no call to interrupt. nullptr: use the file. Called for
  // every blocked thread in a dump, otherwise for those outside a call: it takes 3 us.
  NativeCapture* hold_stopped(pid_t tid, process::ThreadProbe& probe, unwind::Registers& registers);
  NativeCapture::Held stop_on_its_cpu(pid_t tid, process::ThreadProbe& probe, unwind::Registers& registers);
  // Threads that no source holds in this turn.
  void wait_on(pid_t tid, Nanoseconds waiting);

  NativeSource asked_, in_use_;
  Rights granted_;  // as far as is known
  Nanoseconds interval_asked_;
  Nanoseconds interval_ = 0;  // between events; 0: none was waited for yet
  Nanoseconds patience_;
  Workers& workers_;
  StopCapture stop_;
  BlockedCapture blocked_;
  bool was_blocked_ = false;
  std::optional<PerfCapture> perf_;
  NativeCopy copy_;
  bool fresh_ = false;
  std::optional<bool> waited_for_cpu_;  // the thread that is held
  pid_t longest_ = 0;
  Nanoseconds longest_waiting_ = 0;
};

}  // namespace phlox::sampler
