#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "phlox/base/descriptor.h"
#include "phlox/base/private_folder.h"
#include "phlox/base/text.h"
#include "phlox/base/write_all.h"
#include "phlox/cli/attempts.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/destination.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/overdue.h"
#include "phlox/cli/record_end.h"
#include "phlox/cli/record_request.h"
#include "phlox/cli/record_words.h"
#include "phlox/cli/signal_watch.h"
#include "phlox/cli/triggers.h"
#include "phlox/cli/values.h"
#include "phlox/mcp/json.h"
#include "phlox/naming/live_names.h"
#include "phlox/process/container.h"
#include "phlox/process/launch.h"
#include "phlox/process/process_state.h"
#include "phlox/profile/unfinished.h"
#include "phlox/recording/snapshot.h"
#include "phlox/report/report.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/selection/attach_error.h"
#include "phlox/selection/other_pythons.h"
#include "phlox/view/empty_view.h"

namespace phlox::cli {
namespace {

// One recording from start to end. Destruction order matters: the reverse of the members' order.
class Recording {
 public:
  Recording(const RecordRequest& request, Talk& talk)
      : request_(request),
        talk_(talk),
        watch_(request.options.launched                 ? std::span<const int>(kForwarded)
               : request.triggers.takes_signal(SIGUSR2) ? std::span<const int>(kAttachedForBoth)
                                                        : std::span<const int>(kAttached)) {}

  int run() {
    if (auto ready = prepare(); !ready) return failed(ready.error());
    watch_.start([this](SignalSeen seen) { on_signal(seen); });
    overdue_.emplace(
        stop_, [this](Overdue::Why why) { give_up(why); }, Overdue::Limits());
    set_callbacks();
    if (request_.selection && pids_.empty()) say_if_none();
    std::vector<python::Attempt> attempts;
    auto recorder = sampler::Recorder::attach(pids_, options_, stop_, &attempts);
    say_attempts(attempts, talk_);
    if (!recorder) return not_attached(recorder.error());
    talk_.detail((*recorder)->description());
    if (auto begun = destination_->begin(); !begun) return not_attached(begun.error());
    talk_.detail(fmt::format("recording into {}", destination_->recording()));
    begun_ = true;
    say_ready();
    if (request_.tasks) (*recorder)->with_tasks(destination_->tasks());
    for (const pid_t pid : pids_) put_container(pid);
    // Not for a new program, of which no instant may be missed; with --follow or a selection, siblings first
    // get time to be recorded.
    if (!program_ && !options_.follow && !request_.selection) check_siblings(false);
    Nanoseconds next_check = clock_now() + kCheckSiblingsEvery;
    if (options_.duration) overdue_->due_after(*options_.duration);
    profile::Sink* sink = &destination_->sink();
    if (triggers_) {
      sink = &triggers_->watch(*sink, destination_->recording(), program_.has_value());
      if (names_) triggers_->wait_for(*names_);
      triggers_->start();
    }
    if (names_) {
      names_->begin(*sink, [&] { return (*recorder)->new_frame(); });
      sink = &*names_;
    }
    sampler::Outcome outcome = (*recorder)->run(*sink, stop_, [&](const sampler::Progress& p) {
      overdue_->alive();
      say_descendants();
      talk_.progress(progress_lines(p));
      const Nanoseconds now = clock_now();
      if (now < next_check) return;
      check_siblings(false);
      next_check = clock_now() + std::max(kCheckSiblingsEvery, kRestPerSiblingCheck * (clock_now() - now));
    });
    recorder->reset();
    say_descendants();
    check_siblings(true);
    put_not_recorded();
    return finish(std::move(outcome));
  }

 private:
  // Includes SIGPIPE: while it is blocked, a closed reader is a write error; the program still gets the
  // default.
  static constexpr std::array kAttached = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1};
  static constexpr std::array kAttachedForBoth = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2};
  static constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2};

  static constexpr Nanoseconds kCheckSiblingsEvery = kSecond / 2;
  static constexpr Nanoseconds kRestPerSiblingCheck = 50;

  // A caller that has ended meanwhile gets nothing.
  void say_ready() const {
    if (!request_.ready_fd) return;
    const Descriptor ready(*request_.ready_fd);
    const std::string line =
        mcp::write_json(mcp::Json::object({{"recording", destination_->recording()}})) + "\n";
    (void)write_all(ready.get(), std::as_bytes(std::span(line)));
  }

  // What the recorder asks and reports while it runs.
  void set_callbacks() {
    if (program_) options_.release = [this] { return release(); };
    for (const pid_t pid : pids_) {
      others_.emplace_back(pid, [this](pid_t one) {
        return options_.follow ? fmt::format("why: phlox doctor -p {}", one)
                               : std::string("without --no-follow they are recorded too");
      });
      for (const pid_t other : pids_) others_.back().recorded(other);
    }
    options_.on_waiting = [this] {
      talk_.note(fmt::format("no {}Python yet in process {} ({}) or in what it started: waiting for one",
                             descendants_ > 0 ? "further " : "", pid_, options_.command));
    };
    options_.on_descendant = [this](pid_t pid) { on_descendant(pid); };
    if (request_.selection)
      options_.chosen = [selection = request_.selection](pid_t pid) { return selection->takes(pid); };
  }

  // The sibling processes that were not recorded.
  void put_not_recorded() {
    std::string summary;
    for (const selection::OtherPythons& others : others_) {
      if (const std::string words = others.unjudged_words(); !words.empty()) talk_.warn(words);
      if (const std::string one = others.summary(); !one.empty())
        summary += (summary.empty() ? "" : ". ") + one;
    }
    if (!summary.empty()) destination_->sink().emit_meta(std::string(profile::kNotRecorded), summary);
  }

  Result<void> release() {
    auto released = program_->release();
    released_ = released.has_value();
    return released;
  }

  void say_if_none() {
    if (request_.selection->takes_any()) return;
    talk_.note(none_runs(*request_.selection) + ": waiting for one, Ctrl-C ends it");
  }

  void check_siblings(bool at_the_end) {
    for (selection::OtherPythons& others : others_) {
      others.check();
      if (options_.follow && !at_the_end) continue;  // they may still be recorded
      for (const std::string& line : others.news()) talk_.warn(line);
    }
  }

  // A Python that one of the processes started, and that is now recorded too.
  void on_descendant(pid_t pid) {
    for (selection::OtherPythons& others : others_) others.recorded(pid);
    ++descendants_;
    fresh_.push_back(pid);
  }

  // Reads the process's container while the process still exists.
  void put_container(pid_t pid) {
    const auto container = process::read_container(pid);
    if (!container.id.empty()) destination_->sink().emit_meta(fmt::format("container.{}", pid), container.id);
    if (!container.control_group.empty())
      destination_->sink().emit_meta(fmt::format("control_group.{}", pid), container.control_group);
  }

  // One line for all that appeared together.
  void say_descendants() {
    constexpr int kMostLines = 5;
    const std::vector<pid_t> fresh = std::exchange(fresh_, {});
    for (const pid_t pid : fresh) put_container(pid);
    if (fresh.empty() || lines_of_descendants_ >= kMostLines) return;
    ++lines_of_descendants_;
    talk_.note(fmt::format("{}{}{}", newcomers_words(fresh),
                           request_.selection ? ""
                                              : fmt::format(", started by process {} ({})", pid_,
                                                            shortened(options_.command, kLongestCommandSaid)),
                           lines_of_descendants_ == kMostLines ? "; phlox does not report any more of these"
                           : options_.follow || request_.selection || descendants_ > 1
                               ? ""
                               : "; when it ends, the next Python of it"));
  }

  Result<void> prepare() {
    options_ = request_.options;
    std::vector<std::string> command = request_.program;
    pids_ = request_.pids;
    for (const pid_t pid : pids_) {
      auto state = process::read_process_state(pid);
      if (!state) return fail(state);
      if (auto possible = process::check_recordable(*state); !possible) return possible;
      if (state->traced() && options_.mode == sampler::Mode::ptrace) {
        return fail(ErrorKind::target_state,
                    fmt::format("process {} is already traced by process {} ({}): only one can", pid,
                                state->status.tracer, state->tracer_name),
                    "without --mode ptrace it is read without stopping it");
      }
      for (const std::string& remark : process::remarks_on(*state)) talk_.warn(remark);
      if (pid != pids_.front()) continue;
      options_.command = state->command_line;
      command = words_of(state->command_line);
      if (command.empty()) command.push_back(state->status.name);
    }
    if (request_.selection && pids_.empty()) {
      options_.command = "Pythons " + request_.selection->words();
      command = {"pythons"};
    }
    if (request_.triggers) {
      auto triggers = Triggers::open(request_.triggers, watch_.mask_before(), talk_);
      if (!triggers) return fail(triggers);
      triggers_ = *std::move(triggers);
      if (options_.native) options_.native_files = &names_.emplace(request_.destination.debug_search);
    }
    if (options_.launched) {
      options_.command = fmt::format("{}", fmt::join(request_.program, " "));
      process::LaunchOptions launch;
      launch.user = process::calling_user();
      launch.signal_mask = watch_.mask_before();
      auto program = process::LaunchedProgram::start(request_.program, launch);
      if (!program) return fail(program);
      program_.emplace(*std::move(program));
      pids_ = {program_->pid()};
    }
    pid_ = pids_.empty() ? 0 : pids_.front();
    auto destination =
        Destination::open(request_.destination,
                          default_recording_name(command, pid_ != 0 ? pid_ : ::getpid(), std::time(nullptr)));
    if (!destination) return fail(destination);
    destination_ = *std::move(destination);
    return {};
  }

  // Writes what was recorded so far to a file next to the recording. Runs on the watch's thread; recording
  // continues.
  void take_snapshot() {
    if (!begun_) return;
    const std::string name = snapshot_name(destination_->recording(), std::time(nullptr));
    if (!destination_->has_recording()) {
      talk_.error(
          {ErrorKind::input, destination_->recording() + " holds nothing yet", "try again in a moment"});
    } else if (const auto written = recording::snapshot(destination_->recording(), name, recording_owner());
               !written) {
      talk_.error(written.error());
    } else {
      talk_.note(fmt::format("wrote {}; still recording", with_size(name)));
    }
  }

  // Runs on the watch's thread.
  void on_signal(SignalSeen seen) {
    if (seen.number == SIGPIPE) return;
    if (triggers_ && triggers_->on_signal(seen.number)) return;
    if (seen.number == SIGUSR1 && !program_) return take_snapshot();
    // A program that was not released yet gets no signal: the recording ends, as without a program.
    const bool ends = seen.number == SIGINT || !program_ || !released_;
    if (program_ && released_ && !(seen.from_kernel && (seen.number == SIGINT || seen.number == SIGQUIT))) {
      program_->send_signal(seen.number);  // the terminal sends these to the program too
    }
    if (!ends) return;
    if (stop_.exchange(true)) {
      talk_.error({ErrorKind::system,
                   begun_ && destination_->has_recording()
                       ? fmt::format("ended at once; what was recorded is in {}", destination_->recording())
                       : std::string("ended at once; nothing was recorded"),
                   ""});
      ::_exit(128 + seen.number);
    }
  }

  // Runs on its own thread while another one waits for ever. What was recorded is complete without that one.
  void give_up(Overdue::Why why) {
    talk_.error(Overdue::error_of(
        why, begun_ ? fmt::format("What was written until then is in {}", destination_->recording())
                    : std::string("Nothing was recorded")));
    ::_exit(exit_status(ErrorKind::system));
  }

  int failed(const Error& error) {
    talk_.error(error);
    return exit_status(error.kind);
  }

  int not_attached(Error error) {
    overdue_.reset();
    error = selection::explain_attach_error(std::move(error), pid_, "record");
    if (!program_ || !released_) return failed(error);
    if (stop_)
      error = {ErrorKind::target_gone, "ended before the Python of the program was up: nothing was recorded",
               ""};
    talk_.error(error);
    if (!program_->try_wait()) {
      talk_.note(fmt::format("the program runs on as process {}: waiting for it", pid_));
      program_->wait();
    }
    return exit_status(error.kind);
  }

  int finish(sampler::Outcome outcome) {
    RecordEnd end;
    end.error = outcome.error;
    if (options_.native && !end.error) end.missing = name_native_frames(outcome.modules);
    end.outcome = std::move(outcome);
    overdue_.reset();
    if (auto finished = destination_->finish(); !finished && !end.error) end.error = finished.error();
    if (triggers_) triggers_->finish(destination_->where());
    describe_end(end);
    for (const Message& message : last_messages(end)) talk_.say(message);
    if (!program_) return exit_status(end, {});
    if (!program_->try_wait()) {
      talk_.note(fmt::format("the program runs on as process {}: waiting for it{}", pid_,
                             stop_ ? " (Ctrl-C again leaves it running)" : ""));
    }
    return exit_status(end, program_->wait());
  }

  std::vector<naming::NativeRows::Missing> name_native_frames(
      const std::vector<sampler::NativeModule>& modules) {
    // A debuginfod server may take any time.
    if (request_.destination.debug_search.debuginfod) overdue_.reset();
    auto missing = names_ ? names_->finish({}) : destination_->name(modules);
    keep_within(options_.unwind_cache);
    keep_within(request_.destination.debug_search.name_cache);
    return missing;
  }

  void describe_end(RecordEnd& end) const {
    end.pid = pid_;
    end.native = options_.native.has_value();
    if (request_.selection) end.refused = request_.selection->refused();
    if (end.is_empty() && pid_ == 0) end.none_runs = none_runs(*request_.selection);
    end.recording = destination_->recording();
    end.where = destination_->where();
    end.written = destination_->what_was_written();
    end.exports = destination_->exports();
    end.stays = destination_->stays();
    end.remarks = destination_->remarks();
    end.notes = destination_->notes();
    const profile::Profile& profile = destination_->profile();
    if (end.exports && !end.error)
      end.why_view_is_empty = view::why_empty(profile, request_.destination.choices);
    if (!end.error && !profile.samples().empty()) end.summary = summary();
  }

  // The first lines of `phlox report`.
  std::string summary() const {
    report::ReportOptions options;
    options.choices = request_.destination.choices;
    options.shortest_stall = request_.shortest_stall;
    options.tasks = &destination_->task_rows();
    const auto made = report::make_report(destination_->profile(), options);
    return made ? report::report_summary(*made) : "";
  }

  const RecordRequest& request_;
  Talk& talk_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> released_{false};
  std::atomic<bool> begun_{false};  // a recording exists
  sampler::Options options_;
  std::vector<pid_t> pids_;
  pid_t pid_ = 0;  // the first of pids_
  std::unique_ptr<Destination> destination_;
  std::optional<naming::LiveNames> names_;
  std::unique_ptr<Triggers> triggers_;
  std::optional<process::LaunchedProgram> program_;
  std::vector<selection::OtherPythons> others_;
  int descendants_ = 0, lines_of_descendants_ = 0;
  std::vector<pid_t> fresh_;        // descendants not reported yet
  std::optional<Overdue> overdue_;  // the threads of this and the next member use the members above
  SignalWatch watch_;
};

}  // namespace

int record(const CommandLine& line, Talk& talk) {
  const auto request = record_request_of(line);
  if (!request) {
    talk.error(request.error());
    return exit_status(request.error().kind);
  }
  return Recording(*request, talk).run();
}

}  // namespace phlox::cli
