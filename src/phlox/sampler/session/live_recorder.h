// Programs of processes, from the moment that each is found until none is left or the recording ends: their
// beginnings and ends, their rings, and when rows are emitted. A Backend samples them, and a Host answers
// for the operating system. Called by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/profile/sink.h"
#include "phlox/sampler/assemble/consumer.h"
#include "phlox/sampler/session/backend.h"
#include "phlox/sampler/session/finder.h"
#include "phlox/sampler/session/host.h"
#include "phlox/sampler/session/program_recording.h"
#include "phlox/sampler/session/recorder.h"

namespace phlox::sampler {

class LiveRecorder : public Recorder {
 public:
  // `programs` run in the roots or in descendants of them, and are watched by descriptors of their own.
  // `backend`: samples them.
  LiveRecorder(std::unique_ptr<Host> host, std::unique_ptr<Backend> backend, std::vector<pid_t> roots,
               std::vector<Descriptor> root_pidfds, std::vector<Finder::Found> programs,
               const Options& options)
      : host_(std::move(host)),
        backend_(std::move(backend)),
        roots_(std::move(roots)),
        root_pidfds_(std::move(root_pidfds)),
        first_(std::move(programs)),
        options_(options),
        description_(first_.empty() ? "" : first_.front().program->description()) {
    host_->begin();
  }

  void with_tasks(profile::TaskSink& sink) override { task_sink_ = &sink; }
  Outcome run(profile::Sink& sink, const std::atomic<bool>& stop,
              const std::function<void(const Progress&)>& progress) override;

  std::string description() const override { return description_; }
  // For callers that want details.
  void note(std::string detail) { outcome_.details.push_back(std::move(detail)); }

 private:
  using End = ProgramRecording::End;

  void begin(profile::Sink& sink);
  void meet_news();
  bool is_over(Nanoseconds now);
  bool time_is_up() const;
  void put_what_is_due(Nanoseconds now, const std::function<void(const Progress&)>& progress);
  void commit();
  void begin_program(Finder::Found found);
  void note_fork(profile::ProcessId id, pid_t pid, pid_t parent, const Image& image);
  void check_descendants(Nanoseconds now);
  void begin_births(Nanoseconds until);
  bool is_recorded(pid_t pid) const;
  void begin_found();
  void end_execs();
  void end_program(size_t index, End end);
  std::vector<size_t> wait_for_news();
  void note_refused_wait(int error);
  Nanoseconds longest_wait() const;
  Nanoseconds until_rings_are_due() const;
  void drain();
  void drain_between();
  void count_tasks(Nanoseconds now);
  void count_tasks_at_end();
  void check_around();
  // Whether nothing is left to record or to wait for.
  bool all_ended(Nanoseconds now);
  void want_more();
  // Whether no first sample is awaited.
  bool waits_for_nobody() const { return done_.ticks > 0 || (options_.chosen && active_.empty()); }
  Progress total();
  void warn();

  std::unique_ptr<Host> host_;
  std::unique_ptr<Backend> backend_;
  std::vector<pid_t> roots_;
  std::vector<Descriptor> root_pidfds_;
  std::vector<Finder::Found> first_;
  Options options_;
  std::string description_;

  profile::Sink* sink_ = nullptr;
  const std::atomic<bool>* stop_ = nullptr;  // of the user
  std::optional<Identities> identities_;
  WaitTargetFiles::Host files_;
  profile::TaskSink* task_sink_ = nullptr;
  TaskRowIds task_ids_;
  Nanoseconds drained_ = 0;
  std::vector<std::unique_ptr<ProgramRecording>> active_;
  std::unique_ptr<Finder> finder_;
  std::map<pid_t, profile::ProcessId> rows_;  // the last of a process
  std::map<pid_t, Image> images_;             // of these
  struct {
    Nanoseconds names = 0, progress = 0, commit = 0, cpus = 0;
  } next_;  // when each is due
  uint32_t next_process_ = 1;
  size_t first_to_drain_ = 0;
  std::optional<Nanoseconds> refused_since_;  // the kernel refuses to let it wait
  bool came_much_ = true;
  Outcome outcome_;
  Progress done_;  // of the programs that ended
  std::string why_no_python_;
  bool saw_python_ = false;
  Nanoseconds start_ = 0, cpu_start_ = 0;
  Nanoseconds idle_ = 0;                     // while no program was recorded
  std::optional<Nanoseconds> nobody_since_;  // since then no program is recorded
  uint64_t checks_then_ = 0;                 // of the finder
  bool said_waiting_ = false;
  // Begun at their birth, until they call execve, and the time of their end.
  std::unordered_map<pid_t, Nanoseconds> born_;
  // The last process whose program ended by execve, while none is found in it.
  pid_t became_another_ = 0;
};

}  // namespace phlox::sampler
