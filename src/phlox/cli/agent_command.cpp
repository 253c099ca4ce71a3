// `phlox agent`: records Pythons of this host as `phlox record --all` does, and every interval hands what was
// sampled since to the output. One thread records; agent_output.h has the others.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "phlox/base/private_folder.h"
#include "phlox/base/text.h"
#include "phlox/cli/agent_metrics.h"
#include "phlox/cli/agent_output.h"
#include "phlox/cli/agent_request.h"
#include "phlox/cli/attempts.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/destination.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/overdue.h"
#include "phlox/cli/record_words.h"
#include "phlox/cli/signal_watch.h"
#include "phlox/cli/triggers.h"
#include "phlox/naming/live_names.h"
#include "phlox/process/container.h"
#include "phlox/process/text_file.h"
#include "phlox/push/metrics_port.h"
#include "phlox/recording/writer.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/selection/attach_error.h"
#include "phlox/view/intervals.h"
#include "phlox/view/resource.h"

namespace phlox::cli {
namespace {

// For the last interval, when the agent is asked to end.
constexpr Nanoseconds kLastPush = 5 * kSecond;
constexpr Nanoseconds kLastNames = 2 * kSecond;  // of CPU time
// A recorder commits four times a second.
constexpr Nanoseconds kLongestSilence = 10 * kSecond;

Nanoseconds process_cpu() {
  return clock_now(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t resident_bytes() {
  const auto text = process::read_text("/proc/self/statm");
  if (!text) return 0;
  std::string_view rest = std::string_view(*text).substr(std::min(text->size(), text->find(' ') + 1));
  uint64_t pages = 0;
  return take_number(rest, pages) ? pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

// The recorder's sink: everything goes into the interval, and what a process says about itself too.
class AgentSink : public profile::Sink, public profile::TaskSink {
 public:
  // `commit_done`: what was sampled until now is in the interval. `recording` gets every row too, until it
  // fails, and `tasks` those of tasks; both may be null.
  AgentSink(view::Intervals& intervals, profile::Sink* recording, profile::TaskSink* tasks,
            std::function<void()> commit_done, std::function<void(const Error&)> recording_failed)
      : intervals_(intervals),
        recording_(recording),
        tasks_(tasks),
        commit_done_(std::move(commit_done)),
        recording_failed_(std::move(recording_failed)) {}

  void receive(const profile::AnyRow& row) override {
    intervals_.receive(row);
    if (recording_ != nullptr) recording_->receive(row);
    const auto* process = std::get_if<profile::Numbered<profile::ProcessId>>(&row);
    if (process == nullptr || process->id.value <= known_) return;
    known_ = process->id.value;
    read_facts(process->value.pid);
  }
  Result<void> commit() override {
    (void)intervals_.commit();
    commit_done_();
    if (recording_ == nullptr) return {};
    if (auto done = recording_->commit(); !done) {
      recording_failed_(done.error());
      recording_ = nullptr;
      tasks_ = nullptr;
    }
    return {};
  }
  void put_task_census(profile::TaskCensusId id, const profile::TaskCensus& row) override {
    each_task_sink([&](profile::TaskSink& sink) { sink.put_task_census(id, row); });
  }
  void put_event_loop(profile::EventLoopId id, const profile::EventLoop& row) override {
    each_task_sink([&](profile::TaskSink& sink) { sink.put_event_loop(id, row); });
  }
  void put_task_stack(profile::TaskStackId id, const profile::TaskStack& row) override {
    each_task_sink([&](profile::TaskSink& sink) { sink.put_task_stack(id, row); });
  }
  void put_task_time(profile::TaskTimeId id, const profile::TaskTime& row) override {
    each_task_sink([&](profile::TaskSink& sink) { sink.put_task_time(id, row); });
  }
  void put_task_group(profile::TaskGroupId id, const profile::TaskGroup& row) override {
    each_task_sink([&](profile::TaskSink& sink) { sink.put_task_group(id, row); });
  }
  void put_ready_tasks(profile::ReadyTasksId id, const profile::ReadyTasks& row) override {
    each_task_sink([&](profile::TaskSink& sink) { sink.put_ready_tasks(id, row); });
  }
  void put_task_waiter(profile::TaskWaiterId id, const profile::TaskWaiter& row) override {
    each_task_sink([&](profile::TaskSink& sink) { sink.put_task_waiter(id, row); });
  }
  void put_job_waiter(profile::JobWaiterId id, const profile::JobWaiter& row) override {
    each_task_sink([&](profile::TaskSink& sink) { sink.put_job_waiter(id, row); });
  }
  void put_request(profile::RequestId id, const profile::Request& row) override {
    each_task_sink([&](profile::TaskSink& sink) { sink.put_request(id, row); });
  }
  void put_request_part(profile::RequestPartId id, const profile::RequestPart& row) override {
    each_task_sink([&](profile::TaskSink& sink) { sink.put_request_part(id, row); });
  }

 private:
  template <class Put>
  void each_task_sink(Put put) {
    put(intervals_.tasks());
    if (tasks_ != nullptr) put(*tasks_);
  }

  // While the process still exists.
  void read_facts(pid_t pid) {
    const auto container = process::read_container(pid);
    if (!container.id.empty()) put(fmt::format("container.{}", pid), container.id);
    if (!container.control_group.empty()) put(fmt::format("control_group.{}", pid), container.control_group);
  }

  void put(const std::string& key, const std::string& value) {
    intervals_.emit_meta(key, value);
    if (recording_ != nullptr) recording_->emit_meta(key, value);
  }

  view::Intervals& intervals_;
  profile::Sink* recording_;
  profile::TaskSink* tasks_;
  std::function<void()> commit_done_;
  std::function<void(const Error&)> recording_failed_;
  uint32_t known_ = 0;  // the last process whose facts were read
};

// Destruction order matters: the reverse of the members' order.
class Agent {
 public:
  Agent(AgentRequest request, Talk& talk)
      : request_(std::move(request)),
        talk_(talk),
        watch_(request_.triggers.takes_signal(SIGUSR1) || request_.triggers.takes_signal(SIGUSR2)
                   ? std::span<const int>(kWithConditions)
                   : std::span<const int>(kSignals)) {}

  int run() {
    for (const std::string& warning : request_.warnings) talk_.warn(warning);
    if (auto ready = prepare(); !ready) return failed(ready.error());
    watch_.start([this](SignalSeen seen) { on_signal(seen); });
    overdue_.emplace(
        stop_, [this](Overdue::Why why) { give_up(why); }, Overdue::Limits());
    std::vector<python::Attempt> attempts;
    request_.recorder.on_descendant = [this](pid_t pid) {
      talk_.detail(fmt::format("also recording process {}", pid));
    };
    if (request_.recorder.native) {
      naming::LiveNames::Limits limits;
      if (!recording_) limits.missing = 0;
      request_.recorder.native_files = &names_.emplace(request_.debug_search, limits);
    }
    auto recorder = sampler::Recorder::attach({}, request_.recorder, stop_, &attempts);
    say_attempts(attempts, talk_);
    if (!recorder) return failed(selection::explain_attach_error(recorder.error(), 0, "agent"));
    // After the recorder has given up the rights that it needs no more.
    output_->start();
    if (auto listening = listen(); !listening) return failed(listening.error());
    say_start();
    begin_ = now();
    const char* const attributes = std::getenv("OTEL_RESOURCE_ATTRIBUTES");
    if (attributes != nullptr) intervals_.emit_meta(view::kHostResource, attributes);
    profile::Sink* recording = recording_.get();
    if (triggers_) {
      recording = &triggers_->watch(*recording_, request_.recording, false);
      if (names_) triggers_->wait_for(*names_);
      triggers_->start();
    }
    AgentSink sink(
        intervals_, recording, recording_.get(), [this] { on_commit(); },
        [this](const Error& error) {
          talk_.warn(error.message + "; the agent continues without a recording" +
                     (triggers_ ? ", and writes no incidents" : ""));
        });
    if (request_.tasks) (*recorder)->with_tasks(sink);
    profile::Sink* rows = &sink;
    if (names_) {
      names_->begin(sink, [&] { return (*recorder)->new_frame(); });
      rows = &*names_;
    }
    const sampler::Outcome outcome = (*recorder)->run(*rows, stop_, [this](const sampler::Progress& p) {
      overdue_->alive();
      note_progress(p);
    });
    recorder->reset();
    if (names_) {
      names_->finish({kLastNames, kLastNames});
      keep_within(request_.recorder.unwind_cache);
      keep_within(request_.debug_search.name_cache);
    }
    overdue_.reset();
    return finish(outcome);
  }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  static constexpr std::array kWithConditions = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

  Result<void> prepare() {
    if (auto loaded = http::load_curl(); !loaded) return loaded;
    for (const push::Target& target : request_.targets) {
      if (push::is_grpc(target.protocol) && !http::has_http2())
        return fail(
            ErrorKind::system,
            fmt::format("cannot send to {}: gRPC needs HTTP/2, and this libcurl has none", target.shown),
            "install the libcurl of the distribution, or use --otlp or --pyroscope");
    }
    auto output = AgentOutput::open(
        {request_.targets, request_.state, request_.buffer,
         http::ClientOptions{.certificates = request_.certificates}, request_.recorder.rate_hz},
        talk_);
    if (!output) return fail(output);
    output_ = *std::move(output);
    if (request_.recording.empty()) return {};
    if (request_.triggers) {
      auto triggers = Triggers::open(request_.triggers, watch_.mask_before(), talk_);
      if (!triggers) return fail(triggers);
      triggers_ = *std::move(triggers);
    }
    auto recording = recording::Writer::create(request_.recording, recording_owner());
    if (!recording) return fail(recording);
    recording_ = *std::move(recording);
    recording_->keep_only({{}, request_.keep});
    return {};
  }

  Result<void> listen() {
    if (request_.listen.empty()) return {};
    auto port =
        push::MetricsPort::open(request_.listen, [this](std::string_view path) { return page(path); });
    if (!port) return fail(port);
    port_ = *std::move(port);
    talk_.note(fmt::format("serving /metrics and /healthz on port {}", port_->port()));
    return {};
  }

  void say_start() {
    std::string servers;
    for (const push::Target& target : request_.targets)
      servers += (servers.empty() ? "" : " and ") + target.shown;
    const std::string& words = request_.selection->words();
    talk_.note(fmt::format("sending profiles of every Python {} to {}, every {:g} s",
                           words.empty() ? "on this host" : words, servers,
                           static_cast<double>(request_.interval) * 1e-9));
  }

  static view::Intervals::Moment now() { return {clock_now(), clock_now(CLOCK_REALTIME)}; }

  // By the recorder's thread.
  void on_commit() {
    last_commit_ = clock_now();
    if (last_commit_ - begin_.monotonic < request_.interval || output_->is_busy()) return;
    cut();
    if (const std::string refused = request_.selection->refused(); refused != said_refused_) {
      said_refused_ = refused;
      if (!refused.empty()) talk_.warn(refused);
    }
  }

  void cut() {
    view::Intervals::Moment end = now();
    profile::Profile interval = intervals_.cut(begin_, end);
    begin_ = end;
    samples_ = intervals_.samples();
    kept_rows_ = intervals_.kept_rows();
    if (interval.samples().empty() && interval.samples_of_others().empty()) return;
    ++intervals_made_;
    output_->give(std::move(interval));
  }

  void note_progress(const sampler::Progress& p) {
    processes_ = p.processes;
    rejected_ = p.rejected();
    lost_ = p.lost;
    taken_ = p.target_time;
  }

  int finish(const sampler::Outcome& outcome) {
    while (output_->is_busy()) ::usleep(kPollForEncoder);
    cut();
    output_->finish(kLastPush);
    port_.reset();
    std::optional<Error> error = outcome.error;
    if (recording_) {
      if (auto finished = recording_->finish(); !finished && !error) error = finished.error();
      if (triggers_) triggers_->finish(recording_->where());
      if (!recording_->where().empty()) talk_.note(fmt::format("wrote {}", recording_->where()));
    }
    for (const std::string& warning : outcome.warnings) talk_.warn(warning);
    for (const std::string& detail : outcome.details) talk_.detail(detail);
    uint64_t sent = 0, lost = 0;
    for (const auto& target : output_->counts()) {
      sent += target.sent;
      lost += target.outbox.lost();
    }
    talk_.note(fmt::format("{} of {}; {} sent{}", counted(samples_, "sample"),
                           counted(outcome.processes, "process", "processes"),
                           counted(sent, "push", "pushes"),
                           lost == 0 ? "" : fmt::format(", {} lost", counted(lost, "push", "pushes"))));
    return error ? failed(*error) : kSuccess;
  }

  static std::string counted(uint64_t count, std::string_view one, std::string_view many = {}) {
    return fmt::format("{} {}", count_words(count),
                       count == 1     ? std::string(one)
                       : many.empty() ? std::string(one) + "s"
                                      : std::string(many));
  }

  // By the port's thread.
  std::optional<push::Page> page(std::string_view path) {
    if (path == "/healthz") {
      const Nanoseconds silent = clock_now() - last_commit_;
      if (last_commit_ == 0 || silent < kLongestSilence) return push::Page{200, "text/plain", "ok\n"};
      return push::Page{503, "text/plain",
                        fmt::format("the recorder has been silent for {} s\n", silent / kSecond)};
    }
    if (path != "/metrics") return {};
    AgentNumbers n;
    n.samples = samples_;
    n.rejected = rejected_;
    n.lost = lost_;
    n.intervals = intervals_made_;
    n.processes = processes_;
    n.kept_rows = kept_rows_;
    n.taken = taken_;
    n.cpu = process_cpu();
    n.memory = resident_bytes();
    n.targets = output_->counts();
    return push::Page{200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(n)};
  }

  // Runs on the watch's thread.
  void on_signal(SignalSeen seen) {
    if (triggers_ && triggers_->on_signal(seen.number)) return;
    if (seen.number == SIGUSR1 || seen.number == SIGUSR2) return;
    if (!stop_.exchange(true)) return;
    talk_.error({ErrorKind::system, "stopped at once; the last interval may be lost", ""});
    ::_exit(128 + seen.number);
  }

  // Runs on its own thread while another one waits for ever.
  void give_up(Overdue::Why why) {
    talk_.error(Overdue::error_of(why, "The last interval is lost"));
    ::_exit(exit_status(ErrorKind::system));
  }

  int failed(const Error& error) {
    talk_.error(error);
    return exit_status(error.kind);
  }

  static constexpr useconds_t kPollForEncoder = 5'000;

  AgentRequest request_;
  Talk& talk_;
  std::atomic<bool> stop_{false};
  view::Intervals intervals_;
  view::Intervals::Moment begin_;
  std::string said_refused_;
  std::atomic<Nanoseconds> last_commit_{0}, taken_{0};
  std::atomic<uint64_t> samples_{0}, rejected_{0}, lost_{0}, intervals_made_{0}, processes_{0}, kept_rows_{0};
  std::unique_ptr<AgentOutput> output_;
  std::unique_ptr<recording::Writer> recording_;
  std::optional<naming::LiveNames> names_;
  std::unique_ptr<Triggers> triggers_;
  std::unique_ptr<push::MetricsPort> port_;
  std::optional<Overdue> overdue_;  // the threads of this and the next member use the members above
  SignalWatch watch_;
};

}  // namespace

int agent(const CommandLine& line, Talk& talk) {
  auto request = agent_request_of(line);
  if (!request) {
    talk.error(request.error());
    return exit_status(request.error().kind);
  }
  return Agent(*std::move(request), talk).run();
}

}  // namespace phlox::cli
