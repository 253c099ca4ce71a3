// Programs of processes, from the moment that each is found until none is left or the recording ends: their
// beginnings and ends, their rings, and when rows are emitted. A Backend samples them, and a Host answers
// for the operating system. Called by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/profile/sink.h"
#include "phlox/sampler/session/active_programs.h"
#include "phlox/sampler/session/backend.h"
#include "phlox/sampler/session/finder.h"
#include "phlox/sampler/session/gaps.h"
#include "phlox/sampler/session/host.h"
#include "phlox/sampler/session/known_processes.h"
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
        options_(options),
        roots_{.pids = std::move(roots),
               .pidfds = std::move(root_pidfds),
               .programs = std::move(programs),
               .description = {}} {
    if (!roots_.programs.empty()) roots_.description = roots_.programs.front().program->description();
    host_->begin();
  }

  void with_tasks(profile::TaskSink& sink) override { task_sink_ = &sink; }
  Outcome run(profile::Sink& sink, const std::atomic<bool>& stop,
              const std::function<void(const Progress&)>& progress) override;

  profile::FrameId new_frame() override { return output_->identities.interner.new_frame(); }
  std::string description() const override { return roots_.description; }
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
  void note_other_mode(const ProgramRecording& one);
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
  bool waits_for_nobody() const {
    return outcome_.progress.ticks > 0 || (options_.chosen && active_.empty());
  }
  Progress total();
  void warn();

  std::unique_ptr<Host> host_;
  std::unique_ptr<Backend> backend_;
  Options options_;
  // What it begins with.
  struct {
    std::vector<pid_t> pids;
    std::vector<Descriptor> pidfds;
    std::vector<Finder::Found> programs;
    std::string description;
  } roots_;

  struct {
    const std::atomic<bool>* stop = nullptr;  // of the user
    Nanoseconds start = 0;
    Nanoseconds cpu_start = 0;  // this process's CPU time then
  } run_;
  profile::TaskSink* task_sink_ = nullptr;
  std::optional<RecordingOutput> output_;
  std::unique_ptr<Finder> finder_;
  ActivePrograms active_;
  KnownProcesses known_;
  Gaps gaps_;
  // When each is due; and how the last drain went.
  struct {
    Nanoseconds names = 0, progress = 0, commit = 0, cpus = 0;
    Nanoseconds drained_at = 0;
    bool came_much = true;
  } pace_;
  std::optional<Nanoseconds> refused_since_;  // the kernel refuses to let it wait
  bool saw_python_ = false;                   // in a program that has ended
  Outcome outcome_;                           // its progress: of the programs that ended
};

}  // namespace phlox::sampler
