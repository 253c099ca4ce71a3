// Processes and threads of a perf.data over time: their rows, their mappings, and how the time of a thread is
// divided among its samples.
//
// Without records of context switches, a sample of a software clock represents its period, CPU time that the
// kernel measured; other events have no time. With switches, time is known to the nanosecond. Between a
// switch to the thread and one away from it, the thread ran, and each interval belongs to the sample that
// ends it, the last one to the stack at the switch, if that was recorded. Until the next switch to it, the
// thread slept, or waited for a CPU if it was pre-empted.
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
#include "phlox/profile/spans.h"

namespace phlox::importers {

class PerfThreads {
 public:
  // All must outlive it.
  PerfThreads(ModuleFiles& files, const PerfFile& file, profile::Sink& sink)
      : files_(files), file_(file), sink_(sink), spans_(sink) {}

  PerfProcess& process(pid_t pid);
  // `copied`: of a process whose fork was recorded, not one that existed when perf began.
  void fork(const perf::TaskRecord& record, bool copied);
  void end(const perf::TaskRecord& record);
  void name(const perf::NameRecord& record, Nanoseconds time);
  void map(const perf::MapRecord& record);

  // How the recording has switches; before the first record. Tracepoints of switches only have those away
  // from a thread, unless every CPU was recorded.
  enum class Switches { none, away, both };
  void know(Switches switches) { switches_ = switches; }
  // A sample of another event than the one that divides time. `period`: 0: it has no time.
  void counted(pid_t pid, pid_t tid, Nanoseconds time, Nanoseconds period, const profile::Sample& sample);
  void switched_in(pid_t pid, pid_t tid, Nanoseconds time);
  // `asleep`: represents the time until it is switched to again; `has_stack`: with the stack at the switch.
  void switched_out(pid_t pid, pid_t tid, Nanoseconds time, bool preempted, const profile::Sample& asleep,
                    bool has_stack);
  // A sample of an event. `period`: the CPU time that it represents, for a clock; 0: for other events.
  void sampled(pid_t pid, pid_t tid, Nanoseconds time, Nanoseconds period, profile::Sample sample);

  // Writes all intervals; threads that still sleep, until `end`.
  void finish(Nanoseconds end);
  void flush() { spans_.flush(); }
  // Python's version of each process, if its file has it.
  void tell_pythons();
  // Stacks of processes that run Python; after tell_pythons().
  struct PythonStacks {
    uint64_t of_silent = 0;      // of processes whose Python does not name its functions
    uint64_t of_telling = 0;     // of processes whose Python does
    uint64_t with_function = 0;  // of these: stacks that contain one of them
  };
  const PythonStacks& python_stacks() const { return python_stacks_; }
  uint32_t processes() const { return last_process_; }
  uint32_t threads() const { return last_thread_; }

 private:
  struct Process {
    explicit Process(pid_t pid, uint16_t machine, ModuleFiles& files) : space(pid, machine, files) {}
    PerfProcess space;
    // None: not seen yet. Shared with its forks: its number may be reused.
    std::shared_ptr<profile::ProcessId> id = std::make_shared<profile::ProcessId>();
    std::shared_ptr<const profile::ProcessId> parent;
    pid_t parent_pid = 0;
    profile::Process row;
    uint64_t used = 0;
  };
  struct Thread {
    profile::ThreadId id;  // none: not seen yet
    profile::Thread row;
    Nanoseconds until = 0;      // how far its time is divided; 0: not known
    Nanoseconds off_since = 0;  // 0: not switched away, or not known
    bool ended = false;
    profile::Sample off;                  // represents that time
    std::optional<profile::Sample> last;  // since it was switched to
    Nanoseconds ran_since_clock = 0;      // since the clock's last sample
  };

  // `parents`: forked processes come after their parents.
  Process& process_row(pid_t pid, Nanoseconds time, bool parents = true);
  void put_parents(const Process& child, Nanoseconds time);
  void tell_python(Process& process);
  Thread& thread_row(pid_t pid, pid_t tid, Nanoseconds time);
  Thread& known_thread(pid_t pid, pid_t tid);
  void put_sleep(Thread& thread, Nanoseconds until);
  void put(Thread& thread, profile::Sample sample, Nanoseconds from, Nanoseconds wall, Nanoseconds cpu,
           profile::CpuState state);

  ModuleFiles& files_;
  const PerfFile& file_;  // for a pipe, the machine becomes known on the way
  profile::Sink& sink_;
  profile::Spans spans_;
  std::unordered_map<pid_t, std::unique_ptr<Process>> processes_;
  std::unordered_map<pid_t, Thread> threads_;
  uint32_t last_process_ = 0, last_thread_ = 0;
  Nanoseconds begin_ = 0;  // of the recorded time
  Switches switches_ = Switches::none;
  PythonStacks python_stacks_;
  uint64_t uses_ = 0;
};

}  // namespace phlox::importers
