// A played operating system and backend for whole recordings (sampler/session/live_recorder.h): processes
// that begin and end by a script, on a clock that passes only while the recording waits. Nothing sleeps, and
// no process is started.
//
//   Play play;
//   play.start(kRoot);
//   play.at(0.5, [&] { play.end(kRoot, "exit 3"); });
//   const Outcome outcome = play.record({kRoot}, options, sink);
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/sampler/session/backend.h"
#include "phlox/sampler/session/finder.h"
#include "phlox/sampler/session/host.h"
#include "phlox/sampler/session/recorder.h"

namespace phlox::test {

// Larger than any real one (kernel/pid.c: PID_MAX_LIMIT), so that nothing in /proc answers for it.
inline constexpr pid_t kPlayedPid = 5'000'000;

struct PlayedSource;

struct PlayedProcess {
  pid_t pid = 0, parent = 0;
  sampler::Image image;
  std::string command_line;
  std::string how = "ended";
  bool ended = false, given = false;
  std::optional<Nanoseconds> used_at_end;
  Descriptor event;                // readable when it has ended
  bool is_sampled = true;          // its sampler gets to it
  uint64_t samples_at_once = 1;    // records at each moment
  PlayedSource* source = nullptr;  // null: not sampled now
};

class Play {
 public:
  explicit Play(Nanoseconds start = Nanoseconds{1} << 50);
  ~Play();

  // --- the script
  PlayedProcess& start(pid_t pid, pid_t parent = 0);
  void end(pid_t pid, const std::string& how, std::optional<Nanoseconds> used = {});
  PlayedProcess& process(pid_t pid) { return *processes_.at(pid); }
  // `seconds` after the beginning.
  void at(double seconds, std::function<void()> what);
  Nanoseconds time(double seconds) const { return begin_ + static_cast<Nanoseconds>(seconds * 1e9); }
  double seconds(Nanoseconds time) const { return static_cast<double>(time - begin_) * 1e-9; }
  // The finder's search finds a Python in it.
  void find(pid_t pid);
  // The backend reports that it was forked.
  void bear(pid_t pid, pid_t parent);
  // The backend reports that its program ended by execve; `executable` runs now.
  void exec(pid_t pid, const std::string& executable, bool is_reported);
  std::unique_ptr<sampler::Program> program(pid_t pid);

  sampler::Outcome record(const std::vector<pid_t>& roots, const sampler::Options& options,
                          profile::Sink& sink);
  // For a part of a recording: time passes while it sleeps.
  std::unique_ptr<sampler::Host> host();

  // --- how the parts behave
  double rate_hz = 100;                    // of all sources
  bool reports_births = false;             // as the backend inside the kernel
  Nanoseconds question = 1'000;            // what it takes to read the clock
  Nanoseconds thread_cpu = 0;              // of the calling thread
  std::string why_otherwise;               // of sources that begin
  std::set<pid_t> has_its_times;           // Backend::prepare() returns nothing for these
  std::set<pid_t> without_python;          // roots
  std::function<void(pid_t)> after_found;  // once the finder has returned it
  std::function<void()> on_progress;
  int refused_wait = 0;  // errno
  sampler::Finder::State found_state;
  std::atomic<bool> stop{false};

  // --- what the recording did
  std::vector<size_t> wanted;
  std::vector<pid_t> checked_again, left;
  std::vector<bool> told_about_births;
  std::vector<Nanoseconds> progress_at;
  std::vector<sampler::Progress> progress;
  std::set<int> forgotten_ends;

 private:
  friend class PlayedHost;
  friend class PlayedFinder;
  friend class PlayedBackend;
  friend struct PlayedSource;
  // Time passes: what the script says until then happens, and samples are taken.
  void pass_until(Nanoseconds when);
  void take_samples(Nanoseconds until);
  pid_t pid_of(const Descriptor& pidfd) const;
  bool any_left() const;

  Nanoseconds begin_, now_, sampled_until_;
  Nanoseconds since_epoch_;  // of the clock's zero, as on this host
  std::multimap<Nanoseconds, std::function<void()>> script_;
  std::map<pid_t, std::unique_ptr<PlayedProcess>> processes_;
  std::map<int, pid_t> watched_;  // by descriptor
  std::vector<pid_t> found_;
  Descriptor found_event_, report_event_;
  std::vector<sampler::Birth> births_;
  std::set<pid_t> newborn_, reported_;
  std::vector<sampler::Backend::Exec> execs_;
};

// What samples one process: `numbers` are as the test sets them, but for the counts of samples.
struct PlayedSource : public sampler::SampleSource {
  PlayedSource(Play& play, pid_t pid, sampler::Ring& ring);
  ~PlayedSource() override { PlayedSource::stop(); }
  void stop() override;
  sampler::SourceNumbers numbers() override { return now; }
  uint64_t published() const override { return version; }
  void stay_above(std::span<const pid_t> threads) override { stays_above = threads.size(); }
  void take(Nanoseconds time, Nanoseconds before);
  void publish(const std::function<void(sampler::SourceNumbers&)>& change);

  Play* play;
  pid_t pid;
  sampler::Ring& ring;
  sampler::SourceNumbers now;
  uint64_t version = 1;
  size_t stays_above = 0;
  bool has_begun = false;
};

}  // namespace phlox::test
