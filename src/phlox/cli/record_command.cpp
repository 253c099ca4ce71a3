#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>

#include "phlox/base/private_folder.h"
#include "phlox/cli/attach_error.h"
#include "phlox/cli/attempts.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/native_names.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/signal_watch.h"
#include "phlox/cli/values.h"
#include "phlox/exporters/registry.h"
#include "phlox/profile/native_frames.h"
#include "phlox/profile/quality.h"
#include "phlox/recording/reader.h"
#include "phlox/recording/writer.h"
#include "phlox/report/report.h"
#include "phlox/sampler/recorder.h"
#include "phlox/target/launch.h"
#include "phlox/target/process_state.h"

namespace phlox::cli {
namespace {

// What is asked for, checked before anything starts.
struct Request {
  std::optional<pid_t> pid;
  std::vector<std::string> program;
  sampler::Options options;
  Output output;
  profile::Choices choices;
  symbols::DebugSearch debug_search;
};

Result<Request> request_of(const CommandLine& line) {
  const RecordArguments& a = line.record;
  Request request;
  if (line.has_program == !a.pid.empty()) {
    return fail(ErrorKind::usage,
                line.has_program ? "a process and a program to start: give one of them" : "record what?",
                "phlox record -p PID, or: phlox record -- python3 app.py");
  }
  if (!a.pid.empty()) {
    auto pid = parse_pid(a.pid);
    if (!pid) return fail(pid);
    request.pid = *pid;
  }
  request.program = line.program;
  if (line.has_program && request.program.empty()) {
    return fail(ErrorKind::usage, "no program after --", "phlox record -- python3 app.py");
  }
  if (!a.rate.empty()) {
    auto rate = parse_rate(a.rate);
    if (!rate) return fail(rate);
    request.options.rate_hz = *rate;
  }
  if (!a.duration.empty()) {
    auto duration = parse_duration(a.duration);
    if (!duration) return fail(duration);
    request.options.duration = *duration;
  }
  auto overhead = parse_overhead(a.max_overhead.empty() ? "2" : a.max_overhead);
  if (!overhead) return fail(overhead);
  request.options.max_overhead_percent = *overhead;
  auto way = parse_way(a.way, a.hands_off);
  if (!way) return fail(way);
  request.options.way = *way;
  auto native = native_source_of(a.native);
  if (!native) return fail(native);
  request.options.native = *native;
  if (request.options.native) request.options.unwind_cache = unwind_cache();
  request.debug_search = debug_search_of(a.native);
  auto output = parse_output(a.output);
  if (!output) return fail(output);
  request.output = *output;
  auto choices = choices_of(a.view);
  if (!choices) return fail(choices);
  request.choices = *choices;
  if (request.output.kind == OutputKind::exported && choices->thread_regex) {
    // A pattern that does not parse must not be found out at the end of the recording.
    if (auto tried = profile::build_call_tree(profile::Profile(), *choices); !tried) return fail(tried);
  }
  request.options.launched = line.has_program;
  request.options.command_line = line.text;
  return request;
}

// Where the rows go while recording, and what becomes of them.
class Destination {
 public:
  static Result<std::unique_ptr<Destination>> open(const Request& request,
                                                   const std::vector<std::string>& command, pid_t pid) {
    std::unique_ptr<Destination> made(new Destination(request));
    const auto owner = target::calling_user();
    if (request.output.kind == OutputKind::exported) {
      auto exported = OutputFile::open(request.output.path, owner);
      if (!exported) return fail(exported);
      made->exported_ = *std::move(exported);
      made->recording_ = made->partial_name(pid);
    } else {
      made->recording_ = request.output.path.empty()
                             ? default_recording_name(command, pid, std::time(nullptr))
                             : request.output.path;
    }
    std::optional<recording::Owner> file_owner;
    if (owner) file_owner = recording::Owner{owner->uid, owner->gid};
    auto writer = recording::Writer::create(made->recording_, file_owner);
    if (!writer) return fail(writer);
    made->writer_ = *std::move(writer);
    made->rows_.emplace(*made->writer_);
    return made;
  }

  ~Destination() {
    if (!keep_) discard();
  }

  profile::Sink& sink() { return request_.options.native ? static_cast<profile::Sink&>(*rows_) : *writer_; }
  // Of the native frames, when all is recorded.
  std::vector<NativeRows::Missing> name(const std::vector<sampler::NativeModule>& modules) {
    auto missing = rows_->name(modules, request_.debug_search);
    rows_->advise(missing);
    return missing;
  }
  const std::string& recording() const { return recording_; }
  bool is_partial() const { return exported_ != nullptr; }
  // From here on the recording stays, whatever happens.
  void keep() { keep_ = true; }

  // Closes the recording and writes the export from it.
  Result<void> finish() {
    auto finished = writer_->finish();
    writer_.reset();
    if (!finished) return finished;
    if (!exported_ && !is_short()) return {};
    auto read = recording::read(recording_);
    if (!read) return fail(read);
    profile_ = *std::move(read);
    profile::show_native_frames(profile_, request_.choices);
    if (!exported_) return {};
    const exporters::Format* format = exporters::find_format(request_.output.format);
    if (auto written = format->write(profile_, request_.choices, {}, exported_->stream()); !written)
      return fail(written);
    if (auto committed = exported_->commit(); !committed) return committed;
    discard();
    return {};
  }
  // What was recorded; empty before finish(), and of a long recording that nothing was made of.
  const profile::Profile& profile() const { return profile_; }

 private:
  // Short enough to be summed up at once: recording takes 20 MiB at most, and 4 MB of rows are about that in
  // memory.
  bool is_short() const {
    constexpr off_t kLongest = 4'000'000;
    struct stat there {};
    return ::stat(recording_.c_str(), &there) == 0 && there.st_size <= kLongest;
  }

  explicit Destination(const Request& request) : request_(request) {}

  // Beside the output, and findable there should phlox be killed: "flame.svg.partial.phlox".
  std::string partial_name(pid_t pid) const {
    struct stat there {};
    const std::string& path = request_.output.path;
    const bool plain = path != "-" && (::stat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode));
    if (plain) return path + ".partial.phlox";
    const char* folder = std::getenv("TMPDIR");
    return fmt::format("{}/phlox-{}-{}.partial.phlox", folder != nullptr && *folder != 0 ? folder : "/tmp",
                       pid, ::getpid());
  }
  void discard() {
    writer_.reset();
    if (recording_.empty()) return;
    for (const char* end : {"", "-wal", "-shm", "-journal"}) ::unlink((recording_ + end).c_str());
  }

  const Request& request_;
  std::unique_ptr<OutputFile> exported_;
  std::unique_ptr<recording::Writer> writer_;
  std::optional<NativeRows> rows_;
  std::string recording_;
  profile::Profile profile_;
  bool keep_ = false;
};

// The numbers of a recording as its quality line.
profile::QualitySummary quality_of(const sampler::Progress& p) {
  profile::Profile numbers;
  profile::Process process;
  process.way_of_reading = p.way;
  numbers.put_process(profile::ProcessId(1), process);
  sampler::put_tallies(numbers, profile::ProcessId(1), p);
  return profile::summarize_quality(numbers);
}

std::string progress_line(const sampler::Progress& p) {
  return fmt::format(
      "recording {:.1f} s, {} samples, {:.0f} Hz{}, {} rejected ({:.2f} %)  Ctrl-C ends it",
      static_cast<double>(p.elapsed) * 1e-9, p.samples, p.rate_hz,
      p.asked_rate_hz > 0 ? fmt::format(" of {:g}", p.asked_rate_hz) : "", p.rejected(),
      p.samples > 0 ? 100.0 * static_cast<double>(p.rejected()) / static_cast<double>(p.samples) : 0.0);
}

std::string size_of(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return "";
  const auto bytes = static_cast<double>(there.st_size);
  return bytes < 1e6 ? fmt::format(" ({:.0f} KB)", bytes / 1e3) : fmt::format(" ({:.1f} MB)", bytes / 1e6);
}

// One recording from start to end. The members are in the order of their making; they go away in the other.
class Recording {
 public:
  Recording(const Request& request, Talk& talk)
      : request_(request),
        talk_(talk),
        watch_(request.pid ? std::span<const int>(kEnding) : std::span<const int>(kHandedOn)) {}

  int run() {
    if (auto ready = prepare(); !ready) return failed(ready.error());
    watch_.start([this](SignalSeen seen) { on_signal(seen); });
    if (program_) {
      if (auto released = program_->release(); !released) return failed(released.error());
      released_ = true;
    }
    std::vector<python::Attempt> attempts;
    auto recorder = sampler::Recorder::attach(pid_, options_, stop_, &attempts);
    say_attempts(attempts, talk_);
    if (!recorder) return not_attached(recorder.error());
    talk_.detail((*recorder)->description());
    talk_.detail(fmt::format("recording into {}", destination_->recording()));
    destination_->keep();
    const sampler::Outcome outcome =
        (*recorder)->run(destination_->sink(), stop_,
                         [this](const sampler::Progress& p) { talk_.progress(progress_line(p)); });
    recorder->reset();
    return finish(outcome);
  }

 private:
  // SIGPIPE among them: blocked, a reader that goes away is an error of writing, and the program still gets
  // its default.
  static constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  static constexpr std::array kHandedOn = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2};

  Result<void> prepare() {
    options_ = request_.options;
    std::vector<std::string> command = request_.program;
    if (request_.pid) {
      pid_ = *request_.pid;
      auto state = target::read_process_state(pid_);
      if (!state) return fail(state);
      if (auto possible = target::check_recordable(*state); !possible) return possible;
      if (state->traced() && options_.way == sampler::Way::ptrace) {
        return fail(ErrorKind::target_state,
                    fmt::format("process {} is already traced by process {} ({}): only one can", pid_,
                                state->status.tracer, state->tracer_name),
                    "without --way ptrace it is read without stopping it");
      }
      for (const std::string& remark : target::remarks_on(*state)) talk_.warn(remark);
      options_.command = state->command_line;
      for (size_t at = 0;
           at < state->command_line.size();) {  // the blanks inside an argument matter little for a name
        const size_t blank = std::min(state->command_line.find(' ', at), state->command_line.size());
        command.push_back(state->command_line.substr(at, blank - at));
        at = blank + 1;
      }
      if (command.empty()) command.push_back(state->status.name);
    } else {
      options_.command = fmt::format("{}", fmt::join(request_.program, " "));
      target::LaunchOptions launch;
      launch.user = target::calling_user();
      launch.signal_mask = watch_.mask_before();
      auto program = target::LaunchedProgram::start(request_.program, launch);
      if (!program) return fail(program);
      program_.emplace(*std::move(program));
      pid_ = program_->pid();
    }
    auto destination = Destination::open(request_, command, pid_);
    if (!destination) return fail(destination);
    destination_ = *std::move(destination);
    return {};
  }

  // On the watch's thread.
  void on_signal(SignalSeen seen) {
    if (seen.number == SIGPIPE) return;
    // A program that was not let go yet hears nothing: then the recording ends, as without one.
    const bool ends = seen.number == SIGINT || !program_ || !released_;
    if (program_ && released_ && !(seen.from_kernel && (seen.number == SIGINT || seen.number == SIGQUIT))) {
      program_->send_signal(seen.number);  // what the terminal sends, it sends to the program too
    }
    if (!ends) return;
    if (stop_.exchange(true)) {
      talk_.error({ErrorKind::system,
                   fmt::format("ended at once; what was recorded is in {}", destination_->recording()), ""});
      ::_exit(128 + seen.number);
    }
  }

  // What would make the native frames say more.
  void tell_missing(const std::vector<NativeRows::Missing>& missing) {
    constexpr size_t kMost = 5;
    size_t told = 0, more = 0;
    for (const NativeRows::Missing& row : missing) {
      const bool worth = !row.names.complete && told < kMost;
      if (worth) {
        talk_.note(describe(row));
        ++told;
      } else {
        talk_.detail(describe(row));
        more += !row.names.complete;
      }
    }
    if (more > 0)
      talk_.note(fmt::format("and {} more modules without names or lines (--verbose lists them)", more));
  }

  int failed(const Error& error) {
    talk_.error(error);
    return exit_status(error.kind);
  }

  int not_attached(Error error) {
    error = explain_attach_error(std::move(error), pid_, fmt::format("record -p {}", pid_));
    if (!program_) return failed(error);
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
    std::vector<NativeRows::Missing> missing;
    if (options_.native && !error) {
      missing = destination_->name(outcome.modules);
      keep_within(options_.unwind_cache);
      keep_within(request_.debug_search.name_cache);
    }
    if (auto finished = destination_->finish(); !finished && !error) error = finished.error();
    for (const std::string& warning : outcome.warnings) talk_.warn(warning);
    for (const std::string& detail : outcome.details) talk_.detail(detail);
    if (outcome.why == sampler::Ended::target_ended) {
      // Of a process that is not our child the kernel tells only that it is gone.
      const bool known = outcome.how_target_ended != "ended" && !outcome.how_target_ended.empty();
      talk_.note(fmt::format("process {} ended{}; the recording is complete", pid_,
                             known ? ": " + outcome.how_target_ended : ""));
    }
    const auto quality = quality_of(outcome.progress);
    talk_.note(fmt::format("{:.1f} s: {}", static_cast<double>(outcome.progress.elapsed) * 1e-9,
                           profile::quality_line(quality)));
    if (quality.needs_warning()) talk_.warn(profile::quality_warning(quality));
    if (const auto cost = profile::cost_warning(quality); !cost.empty()) {
      talk_.warn(cost +
                 (outcome.progress.rests > 0 ? "; it was left half of its time, which no option takes" : ""));
    }
    tell_missing(missing);
    if (outcome.progress.samples == 0) talk_.warn("no sample was taken: the recording is empty");
    if (!error && !destination_->profile().samples().empty()) {
      // The first lines of `phlox report`.
      report::ReportOptions options;
      options.choices = request_.choices;
      if (const auto made = report::make_report(destination_->profile(), options))
        talk_.lines(report::report_summary(*made));
    }
    if (error) {
      talk_.error(*error);
      if (destination_->is_partial())
        talk_.note(fmt::format("what was recorded is in {}", destination_->recording()));
    } else if (destination_->is_partial()) {
      if (request_.output.path != "-")
        talk_.note(fmt::format("wrote {}{}", request_.output.path, size_of(request_.output.path)));
    } else {
      const std::string& path = destination_->recording();
      talk_.note(fmt::format("wrote {}{}; more: phlox report {}; flame graph: phlox export {} -o flame.svg",
                             path, size_of(path), path, path));
    }
    if (!program_) return error ? exit_status(error->kind) : kSuccess;
    if (!program_->try_wait()) {
      talk_.note(fmt::format("the program runs on as process {}: waiting for it{}", pid_,
                             stop_ ? " (Ctrl-C again leaves it running)" : ""));
    }
    const target::ExitStatus status = program_->wait();
    return error ? exit_status(error->kind) : status.shell_status();
  }

  const Request& request_;
  Talk& talk_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> released_{false};
  sampler::Options options_;
  pid_t pid_ = 0;
  std::unique_ptr<Destination> destination_;
  std::optional<target::LaunchedProgram> program_;
  SignalWatch watch_;  // last: its thread uses the others
};

}  // namespace

int record(const CommandLine& line, Talk& talk) {
  const auto request = request_of(line);
  if (!request) {
    talk.error(request.error());
    return exit_status(request.error().kind);
  }
  return Recording(*request, talk).run();
}

}  // namespace phlox::cli
