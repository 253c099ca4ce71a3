// Capture's side of native stacks: which source holds a running thread, which a blocked one, and
// the copy that goes with the look being taken. Made when a recording asks for native frames; nothing of it
// runs otherwise. Called by the worker that holds the turn lock; wait() gives the lock up.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/capture/perf_source.h"
#include "phlox/sampler/capture/records.h"
#include "phlox/sampler/capture/ring.h"

namespace phlox::sampler {

class NativeHalf {
 public:
  // `interval`: between two looks; 0: one look only, which no event can be waited for. `real_time`: our
  // class, in which waking up on a thread's CPU pre-empts it at once.
  // `stops` counts those of this half, and outlives it, as `workers` do.
  NativeHalf(pid_t pid, NativeSource asked, Nanoseconds interval, bool real_time, target::StopCounts& stops,
             Workers& workers);

  // Holds a running thread by what is in use; `waiting`: since its last look. With Held::yes gives the source
  // to let go of it by. later: not this turn; it waits on, and its time with it.
  NativeCapture* hold_running(pid_t tid, target::ThreadProbe& probe, Nanoseconds waiting,
                              unwind::Registers& registers, NativeCapture::Held& held);
  // A thread that job control has stopped, blocked as its system call file has it. There are no registers but
  // two in that file, and a stop takes nothing from it: no call is left to interrupt. nullptr: by the file.
  // Asked of every blocked thread by who looks once, else of those outside a call: it takes 3 us.
  NativeCapture* hold_stopped(pid_t tid, target::ThreadProbe& probe, unwind::Registers& registers);
  BlockedCapture& for_blocked() { return blocked_; }
  // What is known of a thread before anybody is asked; `waiting`: since its last look. elsewhere: not this
  // turn; it waits on, and its time with it.
  EventState event_state(pid_t tid, Nanoseconds waiting);
  // Where a thread was last, if an event tells; -1 else.
  int cpu_of(pid_t tid) const { return perf_ ? perf_->cpu_of(tid) : -1; }
  // How many turns a thread that never runs may be left alone, where a look is asked for so often that it
  // makes no difference to whoever reads the recording.
  uint64_t longest_pause() const;
  bool looks_once() const { return interval_asked_ == 0; }
  // What holds running threads; syscall: nothing does.
  NativeSource in_use() const { return in_use_; }
  NativeSource name_of(const NativeCapture* source) const {
    return source == &blocked_ ? NativeSource::syscall
           : source == &stop_  ? NativeSource::ptrace
                               : NativeSource::perf;
  }
  // A look by this source is as sure as the schedule counts around it.
  bool proves(const NativeCapture* source) const {
    return real_time_ || source == &stop_ || source == &blocked_;
  }

  // Of the threads that wait on, the one that has waited longest; 0: nobody. Forgotten by asking.
  pid_t take_longest_waiting();
  // Sleeps until an event of a thread on this worker's CPU wakes it, or until it is time to look at those
  // that no event catches.
  Woken wait(Worker& worker, Nanoseconds interval, TurnLock& turn_lock);
  // A thread that was looked at less than this long ago need not be looked at in this turn: every running
  // thread has events of its own, and each wakes us for all threads.
  Nanoseconds soonest_again() const { return in_use_ == NativeSource::perf ? interval_ / 3 : 0; }
  // LookRecord::ran.
  Nanoseconds ran_between(const target::SchedStat& before, const target::SchedStat& now) const {
    if (now.off()) return -1;
    const target::SchedStat since = now - before;
    return static_cast<Nanoseconds>(since.run_ns + since.wait_ns);
  }
  EventNumbers events() const { return perf_ ? perf_->numbers() : EventNumbers(); }

  NativeCopy& copy() { return copy_; }
  void begin_look() {
    copy_.clear();
    fresh_ = false;
  }
  void taken() { fresh_ = true; }
  NativePart part() const { return fresh_ ? NativePart::fresh : NativePart::none; }
  // What follows a LookRecord's locations on the ring.
  NativeCopy::Parts parts_for(NativePart part) {
    return part == NativePart::fresh ? copy_.parts() : NativeCopy::Parts();
  }

 private:
  NativeCapture::Held stop_on_its_cpu(pid_t tid, target::ThreadProbe& probe, unwind::Registers& registers);
  // Whom nobody holds in this turn.
  void wait_on(pid_t tid, Nanoseconds waiting);

  NativeSource asked_, in_use_;
  bool real_time_;
  Nanoseconds interval_asked_;
  Nanoseconds interval_ = 0;  // between events; 0: none was waited for yet
  Nanoseconds patience_;
  Workers& workers_;
  StopCapture stop_;
  BlockedCapture blocked_;
  std::optional<PerfCapture> perf_;
  NativeCopy copy_;
  bool fresh_ = false;
  pid_t longest_ = 0;
  Nanoseconds longest_waiting_ = 0;
};

}  // namespace phlox::sampler
