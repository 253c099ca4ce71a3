// Processes and threads of a perf.data over time: their rows, what is mapped in them, and how the time of a
// thread is shared out among what was seen of it.
//
// Without records of context switches a sample of a software clock stands for its period, CPU time that the
// kernel measured; other events tell of no time. With them time is known to the nanosecond: between a switch
// to the thread and one away from it, it ran, and a stretch belongs to the sample that ends it, the last one
// to the stack with which it was switched away, where that was recorded; until it is switched to again, it
// slept, or waited for a CPU when it was pre-empted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "phlox/importers/perf_file.h"
#include "phlox/importers/perf_process.h"
#include "phlox/profile/model.h"
#include "phlox/profile/sink.h"
#include "phlox/profile/stretches.h"

namespace phlox::importers {

class PerfThreads {
 public:
  // All must outlive it.
  PerfThreads(ModuleFiles& files, const PerfFile& file, profile::Sink& sink)
      : files_(files), file_(file), sink_(sink), stretches_(sink) {}

  PerfProcess& process(pid_t pid);
  // `copied`: of a process that was seen to fork, not one that perf found there when it began.
  void fork(const perf::TaskRecord& record, bool copied);
  void end(const perf::TaskRecord& record);
  void name(const perf::NameRecord& record, Nanoseconds time);
  void map(const perf::MapRecord& record);

  // What the recording tells of switches; before the first record. Tracepoints of switches tell of those away
  // from a thread alone, unless every CPU was recorded.
  enum class Switches { none, away, both };
  void know(Switches switches) { switches_ = switches; }
  // A sample of another event than the one by which time is shared out. `period`: 0: it tells of no time.
  void counted(pid_t pid, pid_t tid, Nanoseconds time, Nanoseconds period, const profile::Sample& sample);
  void switched_in(pid_t pid, pid_t tid, Nanoseconds time);
  // `asleep`: what stands for the time until it is switched to again; `has_stack`: with the stack that it was
  // switched away with.
  void switched_out(pid_t pid, pid_t tid, Nanoseconds time, bool preempted, const profile::Sample& asleep,
                    bool has_stack);
  // A sample of an event. `period`: CPU time it stands for, of a clock; 0: of something else.
  void sampled(pid_t pid, pid_t tid, Nanoseconds time, Nanoseconds period, profile::Sample sample);

  // All stretches are put; those who sleep still, until `end`.
  void finish(Nanoseconds end);
  void flush() { stretches_.flush(); }
  // Python's version of each process, where its file tells.
  void tell_pythons();
  // Stacks of processes that run Python; after tell_pythons().
  struct PythonStacks {
    uint64_t of_silent = 0;      // of those whose Python does not tell of its functions
    uint64_t of_telling = 0;     // of those whose Python does
    uint64_t with_function = 0;  // of these: in which one of them stands
  };
  const PythonStacks& python_stacks() const { return python_stacks_; }
  uint32_t processes() const { return last_process_; }
  uint32_t threads() const { return last_thread_; }

 private:
  struct Process {
    explicit Process(pid_t pid, uint16_t machine, ModuleFiles& files) : space(pid, machine, files) {}
    PerfProcess space;
    // None: nothing seen of it yet. Shared with those that it forked: its number may be given again.
    std::shared_ptr<profile::ProcessId> id = std::make_shared<profile::ProcessId>();
    std::shared_ptr<const profile::ProcessId> parent;
    pid_t parent_pid = 0;
    profile::Process row;
    uint64_t used = 0;
  };
  struct Thread {
    profile::ThreadId id;  // none: nothing seen of it yet
    profile::Thread row;
    Nanoseconds until = 0;      // how far its time is shared out; 0: not known
    Nanoseconds off_since = 0;  // 0: not switched away, or not known
    bool ended = false;
    profile::Sample off;                  // what stands for that time
    std::optional<profile::Sample> last;  // since it was switched to
    Nanoseconds ran_since_clock = 0;      // since the clock's last sample
  };

  // `parents`: those that it was forked by have one before it.
  Process& process_row(pid_t pid, Nanoseconds time, bool parents = true);
  void put_parents(const Process& child, Nanoseconds time);
  void tell_python(Process& process);
  Thread& thread_row(pid_t pid, pid_t tid, Nanoseconds time);
  Thread& known_thread(pid_t pid, pid_t tid);
  void put_sleep(Thread& thread, Nanoseconds until);
  void put(Thread& thread, profile::Sample sample, Nanoseconds from, Nanoseconds wall, Nanoseconds cpu,
           profile::CpuState state);

  ModuleFiles& files_;
  const PerfFile& file_;  // a pipe tells of its machine on the way
  profile::Sink& sink_;
  profile::Stretches stretches_;
  std::unordered_map<pid_t, std::unique_ptr<Process>> processes_;
  std::unordered_map<pid_t, Thread> threads_;
  uint32_t last_process_ = 0, last_thread_ = 0;
  Nanoseconds begin_ = 0;  // of what was seen
  Switches switches_ = Switches::none;
  PythonStacks python_stacks_;
  uint64_t uses_ = 0;
};

}  // namespace phlox::importers
