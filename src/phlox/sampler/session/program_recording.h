// One program of one process, from its first sample to its end or its execve: the sampling thread, the ring,
// and the consumer that empties it. Several processes have one each at the same time; they share the sink
// and its ids. Used only by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/memory/process_memory.h"
#include "phlox/profile/sink.h"
#include "phlox/python/pool_queues.h"
#include "phlox/sampler/assemble/consumer.h"
#include "phlox/sampler/assemble/native_stacks.h"
#include "phlox/sampler/assemble/wait_target_files.h"
#include "phlox/sampler/observe/ring.h"
#include "phlox/sampler/observe/sample_source.h"
#include "phlox/sampler/session/backend.h"
#include "phlox/sampler/session/context_watch.h"
#include "phlox/sampler/session/host.h"
#include "phlox/sampler/session/program.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/sampler/session/route_watch.h"
#include "phlox/sampler/session/task_census.h"

namespace phlox::sampler {

// Where the programs of a recording put their rows, and the ids of these.
struct RecordingOutput {
  RecordingOutput(profile::Sink& rows, profile::TaskSink* task_rows)
      : sink(rows), identities(rows), tasks(task_rows) {}

  profile::Sink& sink;
  Identities identities;
  WaitTargetFiles::Host files;
  profile::TaskSink* tasks;  // null: what tasks await is not recorded
  TaskRowIds task_ids;
};

class ProgramRecording {
 public:
  enum class End { gone, exec, recording_ended };

  // Shared with the others.
  struct Shared {
    const Options& options;
    RecordingOutput& output;
    Host& host;
    const Backend::Begin& begin;  // samples it
    size_t ring_share = 1;        // how many recordings share the memory of one ring
  };
  // `pidfd`: of its process. Begins to sample at once.
  ProgramRecording(profile::ProcessId id, std::optional<profile::ProcessId> parent,
                   std::unique_ptr<Program> program, Descriptor pidfd, const Shared& shared);

  pid_t pid() const { return program_->pid; }
  const Descriptor& pidfd() const { return pidfd_; }
  bool sampled() { return latest().counts.ticks > 0; }

  // Bytes in the ring, and those that they point to.
  size_t waiting() const { return ring_.waiting(); }
  // Empties the ring, until `deadline`.
  void drain(Nanoseconds deadline);
  // Names threads, stays above them. True: another program runs in the process by now.
  bool check_around();
  // A census of its tasks, if one is due; the last one always, if it has had any. `between` drains.
  void count_tasks(Nanoseconds now, const std::function<void()>& between);
  void count_tasks_at_end(Nanoseconds now, const std::function<void()>& between);
  // When to wake up for the next one; none: not for that.
  std::optional<Nanoseconds> next_census() const;
  // Reports changes to the sink as events, and important ones to `warnings`.
  void put_changes(Nanoseconds now, std::vector<std::string>& warnings);
  void put_counters();
  // Hands on the files of native frames that came since.
  void put_native_files(Nanoseconds now);
  // Numbers of this program alone; of the times, only `sampled_time`.
  Progress numbers();
  // Ends the sampling and puts the rest. `outcome` gets warnings, details and modules.
  void finish(End end, Outcome& outcome);
  // After finish().
  const std::string& why_no_python() const { return why_no_python_; }
  // Backend::Begun::why_otherwise.
  const std::string& why_otherwise() const { return why_otherwise_; }

 private:
  void put_modules(bool with_jit);
  void put_process(Nanoseconds end, const std::string& how, const std::string& mode);
  RemoteAddress first_interpreter();
  void name_threads();
  void name_process();
  void look_at_context();
  bool is_another_program();  // by now
  void take_census(Nanoseconds now, const std::function<void()>& between);
  // Threads that the recording lacks.
  void warn_of_missing(const SourceNumbers& numbers, Outcome& outcome) const;
  // Calls that wait for a thread of a pool.
  void count_calls();
  std::optional<Nanoseconds> used_at_end() const;
  // The source's numbers, copied only if they have changed.
  const SourceNumbers& latest();

  profile::ProcessId id_;
  Descriptor pidfd_;
  const Options& options_;
  Host& host_;
  profile::Sink& sink_;
  Identities& identities_;
  std::unique_ptr<Program> program_;
  profile::Process row_;
  Ring ring_;
  memory::ProcessMemory memory_;  // its own: the sampler's belongs to another thread
  python::PoolQueues queues_;
  std::optional<TaskCensus> census_;
  ContextWatch context_;
  std::optional<RouteWatch> routes_;                                // with each census_
  Nanoseconds next_tasks_ = 0;                                      // when their rows are emitted
  std::map<std::pair<std::string_view, uint64_t>, int64_t> calls_;  // as last reported
  std::function<std::optional<Nanoseconds>()> used_at_its_end_;
  WaitTargetFiles files_;
  Consumer consumer_;
  std::optional<NativeStacks> native_;
  Nanoseconds next_jit_files_ = 0;
  std::string why_otherwise_;
  std::unique_ptr<SampleSource> source_;
  std::optional<SourceNumbers> latest_;
  uint64_t latest_is_ = 0;     // of SampleSource::published()
  uint64_t changes_seen_ = 0;  // of it, too
  process::ProcessClock clock_;
  std::optional<Nanoseconds> used_;   // at the last check
  uint32_t named_ = 0;                // the newest thread at that time
  int name_tries_ = 0;                // name_process()
  int titles_ = 0;                    // that it has set
  std::string started_as_;            // its command line before the first of them
  std::optional<Progress> reported_;  // the last counters that were emitted
  std::string mode_, why_no_python_;
  double rate_ = -1;
  uint64_t left_out_ = 0;      // of the interner, for this program
  size_t kernel_threads_ = 0;  // the maximum
  Nanoseconds begin_ = 0, end_ = 0;
  Nanoseconds sampled_from_ = 0;  // CPU time before its first sample, which belongs to no sample
};

}  // namespace phlox::sampler
