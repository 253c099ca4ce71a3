#include "support/played_recording.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "phlox/python/layout_table.h"
#include "phlox/sampler/observe/records.h"
#include "phlox/sampler/session/live_recorder.h"

namespace phlox::test {

using sampler::Backend;
using sampler::Finder;
using sampler::Host;
using sampler::Program;

namespace {

Descriptor new_event() {
  return Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void make_readable(const Descriptor& event) {
  ::eventfd_write(event.get(), 1);
}

void take_events(const Descriptor& event) {
  eventfd_t count = 0;
  ::eventfd_read(event.get(), &count);
}

}  // namespace

class PlayedFinder : public Finder {
 public:
  explicit PlayedFinder(Play& play) : play_(play) {}
  int descriptor() const override { return play_.found_event_.get(); }
  std::vector<Found> take() override;
  void want(size_t processes) override {
    if (play_.wanted.empty() || play_.wanted.back() != processes) play_.wanted.push_back(processes);
    if (processes > 0 && !play_.found_.empty()) make_readable(play_.found_event_);
  }
  void help(Nanoseconds) override {}
  void check_again(pid_t pid) override {
    play_.checked_again.push_back(pid);
    play_.process(pid).given = false;
  }
  void births_are_reported(bool reported) override { play_.told_about_births.push_back(reported); }
  State state() override {
    State state = play_.found_state;
    // A search takes a hundredth of a second.
    state.checks = static_cast<uint64_t>((play_.now_ - play_.begin_) / (kSecond / 100));
    state.any_left = play_.any_left();
    return state;
  }

 private:
  Play& play_;
};

class PlayedHost : public Host {
 public:
  explicit PlayedHost(Play& play) : play_(play) {}
  Nanoseconds read_clock(clockid_t clock) override {
    play_.now_ += play_.question;
    if (clock == CLOCK_REALTIME) return play_.now_ + play_.since_epoch_;
    if (clock == CLOCK_THREAD_CPUTIME_ID) return play_.thread_cpu;
    return clock == CLOCK_PROCESS_CPUTIME_ID ? (play_.now_ - play_.begin_) / 100 : play_.now_;
  }
  void sleep_until(Nanoseconds when) override { play_.pass_until(when); }
  int wait(std::span<pollfd> descriptors, Nanoseconds longest) override;

  Result<Descriptor> watch(pid_t pid) override;
  bool has_ended(const Descriptor& pidfd) override {
    return !pidfd || play_.process(play_.pid_of(pidfd)).ended;
  }
  std::string how_ended(const Descriptor& pidfd) override {
    return pidfd ? play_.process(play_.pid_of(pidfd)).how : "ended";
  }
  std::unique_ptr<Finder> find_programs(const std::vector<pid_t>&, const sampler::Options&,
                                        const std::vector<Finder::Found>&) override {
    return std::make_unique<PlayedFinder>(play_);
  }
  process::ProcessFacts facts(pid_t pid) override {
    return {pid, play_.process(pid).image.executable, play_.process(pid).command_line};
  }
  sampler::Image image_of(pid_t pid) override {
    return play_.process(pid).ended ? sampler::Image() : play_.process(pid).image;
  }
  Identity identity(pid_t pid) override { return {static_cast<uint64_t>(pid), {}}; }
  std::string environment(pid_t) override { return {}; }
  std::string thread_name(pid_t, pid_t) override { return "python3"; }
  size_t kernel_workers(pid_t) override { return 0; }

  void begin() override {}
  std::function<std::optional<Nanoseconds>()> watch_end(pid_t pid, const Descriptor&) override {
    return [this, pid] { return play_.process(pid).used_at_end; };
  }
  void forget_end(const Descriptor& pidfd) override { play_.forgotten_ends.insert(pidfd.get()); }
  std::string ends_refused() override { return {}; }
  void meet(pid_t) override {}
  bool descendants_are_due(Nanoseconds) override { return false; }
  void check_descendants(Nanoseconds, const std::vector<pid_t>&, const std::function<bool(pid_t)>&) override {
  }
  void put_cpu_use(profile::Sink&) override {}

 private:
  Play& play_;
};

class PlayedBackend : public Backend {
 public:
  explicit PlayedBackend(Play& play) : play_(play) {}
  void start(std::function<void(Nanoseconds)>) override {}
  Begin prepare(Program& program, const Descriptor&) override {
    if (play_.has_its_times.contains(program.pid)) return {};
    return [this, pid = program.pid](sampler::Ring& ring) {
      play_.process(pid).given = true;
      play_.newborn_.erase(pid);
      return Begun{std::make_unique<PlayedSource>(play_, pid, ring), play_.why_otherwise};
    };
  }
  bool reports_births() const override { return play_.reports_births; }
  int descriptor() const override { return play_.reports_births ? play_.report_event_.get() : -1; }
  bool drain(Nanoseconds) override {
    take_events(play_.report_event_);
    return false;
  }
  std::vector<sampler::Birth> births(Nanoseconds until) override;
  void leave(const Program& born) override { play_.left.push_back(born.pid); }
  bool is_newborn(pid_t pid) const override { return play_.newborn_.contains(pid); }
  bool has_reported(pid_t pid) const override { return play_.reported_.contains(pid); }
  std::vector<Exec> execs() override { return std::exchange(play_.execs_, {}); }

 private:
  Play& play_;
};

std::vector<Finder::Found> PlayedFinder::take() {
  take_events(play_.found_event_);
  std::vector<Found> found;
  const size_t most = play_.wanted.empty() ? 0 : play_.wanted.back();
  while (!play_.found_.empty() && found.size() < most) {
    const pid_t pid = play_.found_.front();
    play_.found_.erase(play_.found_.begin());
    PlayedProcess& process = play_.process(pid);
    process.given = true;
    if (process.ended) continue;
    Descriptor pidfd(::fcntl(process.event.get(), F_DUPFD_CLOEXEC, 0));
    play_.watched_[pidfd.get()] = pid;
    found.push_back({play_.program(pid), std::move(pidfd), process.parent});
    if (play_.after_found) play_.after_found(pid);
  }
  return found;
}

int PlayedHost::wait(std::span<pollfd> descriptors, Nanoseconds longest) {
  const Nanoseconds until = play_.now_ + longest;
  play_.pass_until(play_.now_);
  if (play_.refused_wait != 0) return play_.refused_wait;
  while (::poll(descriptors.data(), descriptors.size(), 0) == 0 && play_.now_ < until) {
    const bool any = !play_.script_.empty() && play_.script_.begin()->first < until;
    play_.pass_until(any ? play_.script_.begin()->first : until);
  }
  return 0;
}

Result<Descriptor> PlayedHost::watch(pid_t pid) {
  if (play_.process(pid).ended) return fail(ErrorKind::no_such_process, "it has ended");
  Descriptor pidfd(::fcntl(play_.process(pid).event.get(), F_DUPFD_CLOEXEC, 0));
  play_.watched_[pidfd.get()] = pid;
  return pidfd;
}

std::vector<sampler::Birth> PlayedBackend::births(Nanoseconds until) {
  std::vector<sampler::Birth> given;
  for (auto one = play_.births_.begin(); one != play_.births_.end();) {
    if (*one->program->birth >= until) {
      ++one;
      continue;
    }
    given.push_back(std::move(*one));
    one = play_.births_.erase(one);
  }
  return given;
}

PlayedSource::PlayedSource(Play& its_play, pid_t its_pid, sampler::Ring& its_ring)
    : play(&its_play), pid(its_pid), ring(its_ring) {
  now.rate_hz = play->rate_hz;
  play->process(pid).source = this;
}

void PlayedSource::stop() {
  if (play == nullptr) return;
  play->process(pid).source = nullptr;
  play = nullptr;
}

void PlayedSource::take(Nanoseconds time, Nanoseconds before) {
  const auto push = [this](const auto& record, std::span<const sampler::CodeLocation> stack = {}) {
    if (!ring.push(std::as_bytes(std::span(&record, 1)), std::as_bytes(stack))) ++now.counts.lost;
  };
  if (!std::exchange(has_begun, true)) {
    sampler::ThreadRecord thread;
    thread.thread = 1;
    thread.tid = pid;
    thread.python_id = 1;
    thread.time = before;
    push(thread);
  }
  const sampler::CodeLocation stack[] = {{sampler::kNotRead, 0}};
  const uint64_t records = play->process(pid).samples_at_once;
  for (uint64_t i = 1; i <= records; ++i) {
    const auto part = static_cast<Nanoseconds>(records);
    const Nanoseconds from = before + (time - before) * static_cast<Nanoseconds>(i - 1) / part;
    const Nanoseconds to = before + (time - before) * static_cast<Nanoseconds>(i) / part;
    sampler::ThreadSample sample = sampler::sample_at(1, to, from);
    sample.time.cpu = to - from;
    sample.state.cpu_state = profile::CpuState::running;
    sample.stack.fresh = 1;
    push(sample, stack);
  }
  publish([&](sampler::SourceNumbers& numbers) {
    ++numbers.counts.ticks;
    numbers.counts.reads += records;
    numbers.counts.samples += records;
  });
}

void PlayedSource::publish(const std::function<void(sampler::SourceNumbers&)>& change) {
  change(now);
  ++version;
}

Play::Play(Nanoseconds start)
    : begin_(start),
      now_(start),
      sampled_until_(start),
      since_epoch_(clock_now(CLOCK_REALTIME) - clock_now()),
      found_event_(new_event()),
      report_event_(new_event()) {}
Play::~Play() = default;

PlayedProcess& Play::start(pid_t pid, pid_t parent) {
  auto process = std::make_unique<PlayedProcess>();
  process->pid = pid;
  process->parent = parent;
  process->image = {"/usr/bin/python3", static_cast<uint64_t>(pid)};
  process->command_line = "python3 " + std::to_string(pid);
  process->event = new_event();
  return *processes_.insert_or_assign(pid, std::move(process)).first->second;
}

void Play::end(pid_t pid, const std::string& how, std::optional<Nanoseconds> used) {
  PlayedProcess& one = process(pid);
  one.ended = true;
  one.how = how;
  one.used_at_end = used;
  make_readable(one.event);
}

void Play::at(double seconds, std::function<void()> what) {
  script_.emplace(time(seconds), std::move(what));
}

void Play::find(pid_t pid) {
  found_.push_back(pid);
  make_readable(found_event_);
}

void Play::bear(pid_t pid, pid_t parent) {
  start(pid, parent);
  reported_.insert(pid);
  newborn_.insert(pid);
  auto born = program(pid);
  born->birth = now_;
  born->kernel_id = static_cast<uint32_t>(pid);
  births_.push_back({std::move(born), parent});
  make_readable(report_event_);
}

void Play::exec(pid_t pid, const std::string& executable, bool is_reported) {
  PlayedProcess& one = process(pid);
  one.image = {executable, one.image.start_stack + 1};
  if (!is_reported) return;
  execs_.push_back({pid, one.source != nullptr});
  make_readable(report_event_);
}

std::unique_ptr<Program> Play::program(pid_t pid) {
  python::Interpreter interpreter;
  interpreter.layout = *python::find_layout(3, 12, {});
  interpreter.version = "3.12.1";
  auto made = std::make_unique<Program>(pid, std::move(interpreter));
  made->image = process(pid).image;
  return made;
}

void Play::pass_until(Nanoseconds when) {
  while (!script_.empty() && script_.begin()->first <= when) {
    auto next = script_.extract(script_.begin());
    take_samples(next.key());
    now_ = std::max(now_, next.key());
    next.mapped()();
  }
  take_samples(when);
  now_ = std::max(now_, when);
}

void Play::take_samples(Nanoseconds until) {
  const auto interval = static_cast<Nanoseconds>(1e9 / rate_hz);
  for (Nanoseconds next = sampled_until_ + interval; next <= until; next += interval) {
    for (auto& [pid, process] : processes_) {
      if (process->source != nullptr && process->is_sampled && !process->ended)
        process->source->take(next, sampled_until_);
    }
    sampled_until_ = next;
  }
}

pid_t Play::pid_of(const Descriptor& pidfd) const {
  return watched_.at(pidfd.get());
}

bool Play::any_left() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const auto& row) { return !row.second->ended && !row.second->given; });
}

std::unique_ptr<Host> Play::host() {
  return std::make_unique<PlayedHost>(*this);
}

sampler::Outcome Play::record(const std::vector<pid_t>& roots, const sampler::Options& options,
                              profile::Sink& sink) {
  auto host = std::make_unique<PlayedHost>(*this);
  std::vector<Descriptor> pidfds;
  std::vector<Finder::Found> programs;
  for (const pid_t pid : roots) {
    pidfds.push_back(*host->watch(pid));
    if (!without_python.contains(pid)) programs.push_back({program(pid), *host->watch(pid), 0});
  }
  sampler::LiveRecorder recorder(std::move(host), std::make_unique<PlayedBackend>(*this), roots,
                                 std::move(pidfds), std::move(programs), options);
  return recorder.run(sink, stop, [this](const sampler::Progress& now) {
    progress_at.push_back(now_);
    progress.push_back(now);
    if (on_progress) on_progress();
  });
}

}  // namespace phlox::test
