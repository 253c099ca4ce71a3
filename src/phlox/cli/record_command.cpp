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
#include "phlox/cli/record_request.h"
#include "phlox/cli/record_words.h"
#include "phlox/cli/signal_watch.h"
#include "phlox/cli/triggers.h"
#include "phlox/cli/values.h"
#include "phlox/mcp/json.h"
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
    profile::Sink& sink =
        triggers_ ? triggers_->watch(destination_->sink(), destination_->recording(), program_.has_value())
                  : destination_->sink();
    if (triggers_) triggers_->start();
    const sampler::Outcome outcome = (*recorder)->run(sink, stop_, [&](const sampler::Progress& p) {
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
    return finish(outcome);
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
                    "without --way ptrace it is read without stopping it");
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

  int finish(const sampler::Outcome& outcome) {
    std::optional<Error> error = outcome.error;
    std::vector<naming::NativeRows::Missing> missing;
    if (options_.native && !error) missing = name_native_frames(outcome);
    overdue_.reset();
    if (auto finished = destination_->finish(); !finished && !error) error = finished.error();
    if (triggers_) triggers_->finish(destination_->where());
    say_how_it_went(outcome);
    say_missing(missing, talk_);
    const bool empty = outcome.progress.samples == 0 && !error;
    if (empty) {
      error = nothing_seen(outcome);
    } else if (!outcome.why_no_python.empty()) {
      talk_.warn(fmt::format("no Python was seen: {}", outcome.why_no_python));
    } else if (destination_->exports() && !error) {
      if (const auto why = view::why_empty(destination_->profile(), request_.destination.choices))
        talk_.warn(*why);
    }
    if (!error && !destination_->profile().samples().empty()) say_summary();
    say_what_was_written(error, empty);
    const int failure = empty ? kNothingSeen : error ? exit_status(error->kind) : kSuccess;
    if (!program_) return failure;
    if (!program_->try_wait()) {
      talk_.note(fmt::format("the program runs on as process {}: waiting for it{}", pid_,
                             stop_ ? " (Ctrl-C again leaves it running)" : ""));
    }
    const process::ExitStatus status = program_->wait();
    return error ? failure : status.shell_status();
  }

  std::vector<naming::NativeRows::Missing> name_native_frames(const sampler::Outcome& outcome) {
    // A debuginfod server may take any time.
    if (request_.destination.debug_search.debuginfod) overdue_.reset();
    auto missing = destination_->name(outcome.modules);
    keep_within(options_.unwind_cache);
    keep_within(request_.destination.debug_search.name_cache);
    return missing;
  }

  void say_how_it_went(const sampler::Outcome& outcome) {
    for (const std::string& warning : outcome.warnings) talk_.warn(warning);
    if (request_.selection) {
      if (const std::string refused = request_.selection->refused(); !refused.empty()) talk_.warn(refused);
    }
    for (const std::string& remark : destination_->remarks()) talk_.warn(remark);
    for (const std::string& note : destination_->notes()) talk_.note(note);
    for (const std::string& detail : outcome.details) talk_.detail(detail);
    if (outcome.why == sampler::Ended::target_ended) {
      // For a process that is not our child, the kernel reports only that it is gone.
      const bool known = outcome.how_target_ended != "ended" && !outcome.how_target_ended.empty();
      talk_.note(fmt::format("process {} ended{}; the recording is complete", pid_,
                             known ? ": " + outcome.how_target_ended : ""));
    }
    const auto quality = quality_of(outcome.progress);
    talk_.note(fmt::format("{:.1f} s{}: {}", static_cast<double>(outcome.progress.elapsed) * 1e-9,
                           outcome.processes > 1 ? fmt::format(" of {} processes", outcome.processes) : "",
                           view::quality_line(quality)));
    if (quality.needs_warning()) talk_.warn(view::quality_warning(quality));
    if (const auto cost = view::cost_warning(quality); !cost.empty()) {
      talk_.warn(cost + (outcome.progress.rests > 0 ? "; sampling was limited to half of its time" : ""));
    }
  }

  Error nothing_seen(const sampler::Outcome& outcome) const {
    if (pid_ == 0)
      return {ErrorKind::system,
              "the recording is empty: " +
                  (outcome.why_no_python.empty() ? none_runs(*request_.selection) : outcome.why_no_python),
              "which Pythons are running: phlox list"};
    return {ErrorKind::system,
            fmt::format("no sample was taken of process {}, so the recording is empty: {}", pid_,
                        outcome.why_no_python),
            options_.native
                ? "a longer recording may see it: -d 60"
                : fmt::format("what it does outside of Python: phlox record --native -p {}", pid_)};
  }

  // The first lines of `phlox report`.
  void say_summary() {
    report::ReportOptions options;
    options.choices = request_.destination.choices;
    options.shortest_stall = request_.shortest_stall;
    options.tasks = &destination_->task_rows();
    if (const auto made = report::make_report(destination_->profile(), options))
      talk_.lines(report::report_summary(*made));
  }

  void say_what_was_written(const std::optional<Error>& error, bool empty) {
    if (error) {
      talk_.error(*error);
      if (!empty && !destination_->where().empty())
        talk_.note(fmt::format("what was recorded is in {}", destination_->where()));
      else if (destination_->stays())
        talk_.note(fmt::format("{} is as it was", destination_->recording()));
    } else if (const std::string written = destination_->what_was_written(); !written.empty()) {
      const std::string& path = destination_->where();
      talk_.note(fmt::format("wrote {}", written));
      talk_.note(destination_->exports()
                     ? fmt::format("other views of it: phlox report {}; phlox export {} --help", path, path)
                     : fmt::format("more: phlox report {}; in the browser: phlox view {}", path, path));
    }
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
