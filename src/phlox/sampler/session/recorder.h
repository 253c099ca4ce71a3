// Records processes: finds an interpreter in each, or in a process that it started, samples it, and passes
// everything to a Sink. Called by one thread of cli's, which other headers call the recorder's thread. Prints
// nothing, ends nothing; the target runs on whatever happens here.
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
#include "phlox/sampler/observe/mode.h"

namespace phlox::profile {
class TaskSink;
}

namespace phlox::sampler {

struct Options {
  double rate_hz = 200;                        // samples a second; 0: as fast as possible
  bool rate_is_limit = false;                  // that rate was not requested: a lower one is as good
  std::optional<Nanoseconds> duration;         // none: until stopped or the target ends
  std::optional<double> max_overhead_percent;  // of one CPU, taken from the target; none: no budget
  Mode mode = Mode::automatic;
  bool isolated_cpus = false;  // may run on isolated and nohz_full CPUs too
  // The program was started for us: wait for its interpreter to come up, or, if it has none (a shell script,
  // make), for that of the first Python among its descendants; when that has ended, for the next.
  bool launched = false;
  // Lets it execute the program, once the sampling from its first instruction on is ready; fails as that
  // does.
  std::function<Result<void>()> release;
  // Every Python of the tree, at the same time; otherwise one at a time, for a launched program that is no
  // Python itself.
  bool follow = false;
  // Whether to record this process although it is none of the roots: called for every process of this host,
  // and again for those that have run since, from the finder's thread. Then the recording continues until it
  // is stopped, whatever ends. None: only the roots.
  std::function<bool(pid_t pid)> chosen;
  // Searches for new processes are no closer together: one that lives for a shorter time may be missed. 0: as
  // close as is cheap.
  Nanoseconds search_pause = 0;
  std::function<void()> on_waiting;              // while there is none; from the caller's thread
  std::function<void(pid_t pid)> on_descendant;  // a new process is recorded
  std::string command_line;                      // of phlox, for meta
  std::string command;                           // of the target, for meta
  // Also native frames; the source that holds running threads for them.
  std::optional<NativeSource> native;
  std::string unwind_cache;  // folder of unwind tables; empty: none
  // Gets the files of native frames while they are recorded, instead of the outcome; must outlive the
  // recorder. Null: nobody does.
  profile::NativeFiles* native_files = nullptr;
};

// Running numbers; also those of the last line.
struct Progress {
  Nanoseconds elapsed = 0;
  uint64_t ticks = 0;  // how often the process was sampled
  uint64_t ticks_missed = 0;
  uint64_t samples = 0;  // samples of threads
  uint64_t retried = 0;
  uint64_t rejected_moved = 0, rejected_unreadable = 0, rejected_broken = 0;
  uint64_t detached = 0, cut = 0, unproved = 0;
  uint64_t stops = 0;         // of one thread each
  uint64_t stop_refused = 0;  // samples that needed a stop which was refused
  uint64_t cpu_refused = 0;   // samples of a thread on a CPU that we may not use
  uint64_t lost = 0;          // samples that the consumer could not fetch in time
  // Frames without a name or a line, or stacks without frames: more than the limits allow.
  uint64_t left_out = 0;
  double asked_rate_hz = 0;         // 0: none was requested
  double most_rate_hz = 0;          // if none was requested
  double max_overhead_percent = 0;  // 0: no budget
  double rate_hz = 0;               // achieved, of one process
  std::string mode;                 // "same CPU (real time)", ...
  Nanoseconds target_time = 0;
  Nanoseconds sampled_time = 0;  // how long each process was recorded, added up
  size_t processes = 0;          // recorded at the moment
  // Turns after which the program got its half of the time, because they took so long.
  uint64_t rests = 0;
  Nanoseconds recorder_cpu = 0;
  NativeCounts native;
  // The maximum number of threads that ran at once without a perf event.
  size_t native_without_event = 0;
  size_t kernel_threads = 0;  // the maximum number inside the process; they are left out
  uint64_t rejected() const { return rejected_moved + rejected_unreadable + rejected_broken; }
};

// The rows of a recording for these numbers, by process and of the recorder itself. `reported`: the numbers
// that were emitted before; equal ones are not emitted again. Null: none were.
void put_process_counters(profile::Sink& sink, profile::ProcessId process, const Progress& now,
                          const Progress* reported = nullptr);
void put_recorder_counters(profile::Sink& sink, const Progress& now);
// Counts and times, added up.
void add_to(Progress& total, const Progress& one);

enum class Ended { stopped, duration, target_ended, sink_failed, wait_failed };

struct Outcome {
  Ended why = Ended::stopped;
  Progress progress;
  // The first root: "exit 0", "signal 9 (SIGKILL)", "ended"; empty: it is still running.
  std::string how_target_ended;
  size_t processes = 0;  // programs that were recorded
  // An error of the sink (disk full) or of waiting; the recording until then is complete.
  std::optional<Error> error;
  std::string why_no_python;          // no sample ever found a thread in Python; empty: one did
  std::vector<std::string> warnings;  // lines for the user
  // Sentences for the recording: parts of its processes that it lacks.
  std::vector<std::string> not_read;
  std::vector<std::string> details;  // for --verbose
  // Modules of native frames, as long as they can still be opened; unless Options::native_files gets them.
  std::vector<NativeModule> modules;
};

class Recorder {
 public:
  // Finds the processes and an interpreter in each, or in a process that it started. `launched`: waits until
  // one is up, the process ends, or `stop`. `attempts`: how the interpreter was searched for, found or not.
  static Result<std::unique_ptr<Recorder>> attach(const std::vector<pid_t>& roots, const Options& options,
                                                  const std::atomic<bool>& stop,
                                                  std::vector<python::Attempt>* attempts = nullptr);
  virtual ~Recorder() = default;

  // From now on, also records what tasks of event loops await. Before run(), which the sink must outlive.
  virtual void with_tasks(profile::TaskSink& sink) = 0;

  // Records until `stop`, the duration, or the end of the target. Calls `progress` about ten times a second,
  // from the calling thread, which is also the one that calls the sink.
  virtual Outcome run(profile::Sink& sink, const std::atomic<bool>& stop,
                      const std::function<void(const Progress&)>& progress) = 0;

  // During run(), by its thread: an id for a frame that the caller emits itself, at once. None: too many.
  virtual profile::FrameId new_frame() = 0;

  // What was found, for --verbose: "CPython 3.12.1 (default), found by symbol _PyRuntime in …".
  virtual std::string description() const = 0;
};

}  // namespace phlox::sampler
