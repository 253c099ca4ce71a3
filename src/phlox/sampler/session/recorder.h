// Records processes: finds an interpreter in each, or in what it started, has it looked at, and passes
// everything to a Sink. Called by one thread of cli's, the recorder's thread of other headers. Prints
// nothing, ends nothing; the target goes on running whatever happens here.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/result.h"
#include "phlox/profile/sink.h"
#include "phlox/python/locate.h"
#include "phlox/sampler/assemble/native_stacks.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/capture/way.h"

namespace phlox::sampler {

struct Options {
  double rate_hz = 200;                        // looks a second; 0: as fast as it goes
  bool rate_is_limit = false;                  // nobody asked for that rate: fewer are as good
  std::optional<Nanoseconds> duration;         // none: until stopped or the target ends
  std::optional<double> max_overhead_percent;  // of one CPU, taken from the target; none: no budget
  Way way = Way::automatic;
  bool isolated_cpus = false;  // may run on isolated and nohz_full CPUs too
  // The program was started for us: wait for its interpreter to come up, or, where it is none itself (a shell
  // script, make), for that of the first Python among its descendants; when that ended, for the next.
  bool launched = false;
  // Lets it execute the program, once what looks at it from its first instruction on is there; fails as that
  // does.
  std::function<Result<void>()> release;
  // Every Python of the tree, at once; else one at a time: what a launched program starts when it is none
  // itself.
  bool follow = false;
  // Whether this process is to be recorded though it is none of the roots: asked of every process of this
  // host, and again of those that have run since; from the finder's thread. Then the recording goes on until
  // it is stopped, whatever ends. None: the roots alone.
  std::function<bool(pid_t pid)> chosen;
  std::function<void()> on_waiting;              // while none comes; from the thread of the caller
  std::function<void(pid_t pid)> on_descendant;  // one is recorded from now on
  std::string command_line;                      // of phlox, for meta
  std::string command;                           // of the target, for meta
  std::optional<NativeSource> native;            // native frames too; what holds running threads for it
  std::string unwind_cache;                      // folder of unwind tables; empty: none
};

// Running numbers; also what the last line says.
struct Progress {
  Nanoseconds elapsed = 0;
  uint64_t ticks = 0;  // times looked at the process
  uint64_t ticks_missed = 0;
  uint64_t samples = 0;  // threads looked at
  uint64_t retried = 0;
  uint64_t rejected_moved = 0, rejected_unreadable = 0, rejected_broken = 0;
  uint64_t detached = 0, cut = 0, unproved = 0;
  uint64_t stops = 0;         // of one thread each
  uint64_t stop_refused = 0;  // looks that a stop was wanted for and not had
  uint64_t cpu_refused = 0;   // looks at a thread on a CPU that we may not use
  uint64_t lost = 0;          // looks the consumer could not take in time
  uint64_t left_out = 0;      // frames without a name or a line, or stacks without frames: more than are held
  double asked_rate_hz = 0;   // 0: nobody asked for one
  double most_rate_hz = 0;    // where nobody did
  double max_overhead_percent = 0;  // 0: no budget
  double rate_hz = 0;               // achieved, of one process
  std::string way;                  // "same CPU (real time)", ...
  Nanoseconds target_time = 0;
  Nanoseconds looked_time = 0;  // how long each process was recorded, added up
  size_t processes = 0;         // recorded at the moment
  uint64_t rests = 0;  // turns that took so long that the program was left its half of the time after them
  Nanoseconds recorder_cpu = 0;
  NativeCounts native;
  size_t native_without_event = 0;  // threads that ran at once and had no perf event, at the most
  size_t kernel_threads = 0;        // inside the process, at the most: they are left out
  uint64_t rejected() const { return rejected_moved + rejected_unreadable + rejected_broken; }
};

// What a recording says of them, by process and of the recorder itself.
// `told`: the ones that were put before; what is the same is not put again. Null: none were.
void put_process_tallies(profile::Sink& sink, profile::ProcessId process, const Progress& now,
                         const Progress* told = nullptr);
void put_recorder_tallies(profile::Sink& sink, const Progress& now);
// Counts and times, added up.
void add_to(Progress& total, const Progress& one);

enum class Ended { stopped, duration, target_ended, sink_failed, wait_failed };

struct Outcome {
  Ended why = Ended::stopped;
  Progress progress;
  std::string how_target_ended;  // the first root: "exit 0", "signal 9 (SIGKILL)", "ended"; empty: it runs on
  size_t processes = 0;          // programs that were recorded
  std::optional<Error> error;    // of the sink (disk full) or of waiting; the recording until then is whole
  std::string why_no_python;     // no thread was ever read in Python; empty: one was
  std::vector<std::string> warnings;  // lines worth saying
  std::vector<std::string> not_read;  // sentences for the recording: what of its processes it does not have
  std::vector<std::string> details;   // for --verbose
  std::vector<NativeModule> modules;  // that native frames name, as long as they can still be opened
};

class Recorder {
 public:
  // Finds the processes and an interpreter in each, or in what it started. `launched`: waits until one is up,
  // the process ends, or `stop`. `attempts`: how the interpreter was searched for, found or not.
  static Result<std::unique_ptr<Recorder>> attach(const std::vector<pid_t>& roots, const Options& options,
                                                  const std::atomic<bool>& stop,
                                                  std::vector<python::Attempt>* attempts = nullptr);
  virtual ~Recorder() = default;

  // Records until `stop`, the duration, or the end of the target. Calls `progress` about ten times a second,
  // from the calling thread, which is also the one that calls the sink.
  virtual Outcome run(profile::Sink& sink, const std::atomic<bool>& stop,
                      const std::function<void(const Progress&)>& progress) = 0;

  // What was found, for --verbose: "CPython 3.12.1 (default), found by symbol _PyRuntime in …".
  virtual std::string description() const = 0;
};

}  // namespace phlox::sampler
