// Takes one turn after the other, on the CPU of the thread that is read. While our thread runs there, the
// target's cannot, so its memory does not change; the proof is the kernel's count of times scheduled in
// (docs/decisions/0001-reading-without-stopping.md). Made and ended by the first worker, which may be of the
// real-time class; everything else is called by the worker that holds the turn lock (workers.h). After
// construction it waits only for the clock, and its only output is the ring to the consumer. Reads the
// target, writes nothing into it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/process/thread_probe.h"
#include "phlox/process/thread_stop.h"
#include "phlox/python/frame_walk.h"
#include "phlox/python/interpreter.h"
#include "phlox/sampler/capture/attempts.h"
#include "phlox/sampler/capture/perf_source.h"
#include "phlox/sampler/capture/python_threads.h"
#include "phlox/sampler/capture/snapshot.h"
#include "phlox/sampler/capture/stack_reader.h"
#include "phlox/sampler/capture/trace_reader.h"
#include "phlox/sampler/observe/counts.h"
#include "phlox/sampler/observe/mode.h"
#include "phlox/sampler/observe/ring.h"
#include "phlox/sampler/observe/sample_log.h"
#include "phlox/sampler/observe/trace_numbers.h"

namespace phlox::sampler {

class NativeHalf;
class NativeThreads;

class ProcessSampler {
 public:
  struct Config {
    pid_t pid = 0;
    Mode mode = Mode::automatic;
    // The offset of the C library's rseq.cpu_id from the thread pointer; none: read /proc.
    std::optional<int64_t> rseq_cpu_offset;
    std::optional<Nanoseconds> birth;  // Program::birth
    // Called for each whole stack (leaf first) while its thread is still held; again if the proof fails and
    // it is read again. The thread's number as in ThreadRecord.
    std::function<void(uint32_t thread, std::span<const python::RawFrame>)> on_stack;
    // Also native frames, and threads without Python; the source that holds running threads for them.
    std::optional<NativeSource> native;
    // Between two samples, 0: there is only one; and whether our class is real-time. For native frames.
    Nanoseconds interval = 0;
    bool real_time = false;
    // A turn takes no longer than this from the CPU that it uses; threads that were not sampled come first in
    // the next one.
    Nanoseconds longest_turn = 200'000;
    // The time to read one stack; a deeper one is cut. None: no limit.
    std::optional<Nanoseconds> longest_stack;
    // A dump: every thread is sampled once, in as many turns as that takes (unseen()).
    bool once = false;
    const TraceReader::Variable* traces = nullptr;  // null: never known
  };

  ProcessSampler(const Config& config, const python::Interpreter& interpreter, memory::RemoteMemory& memory,
                 Ring& ring, Workers& workers);
  ~ProcessSampler();
  ProcessSampler(const ProcessSampler&) = delete;
  ProcessSampler& operator=(const ProcessSampler&) = delete;

  // Samples every thread once. `now`: CLOCK_MONOTONIC at the wake-up. `round`: Workers::begin_turn().
  void turn(Nanoseconds now, uint64_t round);
  // Whether every thread was found blocked at `since` or later: if the process has not run since then, each
  // is still where it was sampled. False: the next turns sample the others.
  bool all_blocked_since(Nanoseconds since);
  // In place of turns, after all_blocked_since(): the process has not run until `now`; `round` is the last
  // for which that was checked.
  void stood_still(Nanoseconds now, uint64_t round);
  // Sends held-back samples, and ends every thread.
  void finish(Nanoseconds now);
  // Sends held-back samples, at least four times a second.
  void flush();

  Counts counts() const;
  // The source that holds running threads for their native half; none: native frames are not requested.
  std::optional<NativeSource> native_source() const;
  EventNumbers native_events() const;
  size_t native_threads() const;
  size_t kernel_workers() const;  // NativeThreads::kernel_workers()
  // Sleeps, without the turn lock, until a perf event of a thread wakes this worker for its native half, or
  // about an interval.
  Woken wait_for_event(Worker& worker, Nanoseconds interval, TurnLock& turn_lock);
  // Since the last turn of any worker.
  Nanoseconds rested(Nanoseconds now) const { return now - last_turn_; }
  Mode mode() const { return config_.mode; }
  bool process_gone() const { return threads_.process_gone(); }
  Stateless stateless() const { return threads_.stateless(); }
  // Config::once: what is still to be sampled. A thread that was rejected kEmptySamples times is not sampled
  // again.
  static constexpr uint32_t kEmptySamples = 3;
  struct Unseen {
    size_t threads = 0;
    bool list_whole = false;  // all threads at the beginning of the first turn are known
    bool any() const { return threads > 0 || !list_whole; }
  };
  Unseen unseen() const;
  // As in their last sample; no system call.
  bool any_ran() const;
  bool schedstat_off() const { return schedstat_off_; }
  size_t threads() const { return threads_.all().size(); }

 private:
  struct Seen {
    SampleState state;
    SamplePython python;
  };

  // `since`: from a moment before the call was read.
  void is_in(PythonThread& slot, const process::BlockedIn& call, const process::SchedStat& since, Seen& seen);
  void pause_idle(PythonThread& thread);
  void sample_resting(Nanoseconds now);
  bool scout(Domain& domain);
  // fresh: a thread state that is not in the lists yet.
  enum class Holder : uint8_t { known, fresh };
  Holder read_holder(Domain& domain, Nanoseconds now);
  // `again`: except those that this turn has read.
  Holder read_holders(Nanoseconds now, bool again);
  std::vector<PythonThread*> order_of_turn() const;
  void ask_others(Nanoseconds now);
  bool copy_for_event(Nanoseconds now);
  void read_others(Nanoseconds now);
  void note_who_moved();
  void capture_for(Snapshot::Reader reader, RemoteAddress last = {});
  // process_sampler_modes.cpp
  struct Attempt;
  struct Hold;
  struct OnItsCpu;
  struct FromElsewhere;
  struct AsItSleeps;
  struct WithNative;
  Attempted read_held(PythonThread& slot, Nanoseconds now, bool holds, Hold& hold);
  Attempted read_once(Attempt& attempt, Hold& hold);
  // A thread that runs, or may. False: it does not hold the GIL, although `holds` says so.
  bool read_awake(PythonThread& slot, Nanoseconds now, bool holds);
  void read_other(PythonThread& slot, Nanoseconds now);
  bool read_with_holder(PythonThread& slot, Domain& domain, Nanoseconds now);
  void judge_free(PythonThread& slot, const process::SchedStat& stat, Nanoseconds now, SampleState& state);
  bool by_event() const;
  PythonThread* caught();
  bool seen_lately(const PythonThread& slot, Nanoseconds now) const;
  bool is_over(const PythonThread& slot) const;
  void ask_event(PythonThread& slot, Nanoseconds now);
  ByteRange stack_of(PythonThread& slot, RemoteAddress sp);
  void sample_native_threads(Nanoseconds now);
  StackReader::Reading read_stack(PythonThread& slot);
  bool still_unmoved(PythonThread& slot, const process::SchedStat& since);
  int cpu_of(PythonThread& slot);
  void accept(PythonThread& slot, const process::SchedStat& now_stat, Nanoseconds now, const Seen& seen,
              const StackReader::Reading& reading);
  void did_not_run(PythonThread& slot, const process::SchedStat& stat, Nanoseconds now);
  void reject(PythonThread& slot, Nanoseconds now, Rejected why);

  Config config_;
  python::Interpreter interpreter_;
  const python::Layout& layout_;
  memory::RemoteMemory& memory_;
  Counts counts_;
  process::StopCounts stops_;
  Workers& workers_;
  SampleLog log_;
  Snapshot snapshot_;
  std::unique_ptr<NativeHalf> native_;  // none: native frames are not requested
  StackReader reader_;
  TraceReader traces_;
  TraceNumbers trace_numbers_{log_};
  std::optional<profile::TraceIds> trace_;  // of the thread whose stack was read last
  PythonThreads threads_;
  size_t first_slot_ = 0;           // the first thread of the next turn, if one turn cannot sample all
  uint64_t tick_ = 0;               // the round
  uint64_t last_turns_sample_ = 0;  // the copy of the memory from the last turn
  Nanoseconds last_turn_ = 0;
  // The threads to sample in this turn, the last one for room; nothing: all.
  std::vector<Snapshot::Reader> moved_;
  bool schedstat_off_ = false;
  std::unique_ptr<NativeThreads> native_threads_;
};

}  // namespace phlox::sampler
