#include "phlox/sampler/session/live_recorder.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

#include "phlox/profile/recorded_words.h"
#include "phlox/profile/unfinished.h"
#include "phlox/sampler/session/program.h"
#include "phlox/sampler/session/warnings.h"

namespace phlox::sampler {
namespace {

// A wake-up takes 0.1 ms of a CPU, whatever it finds. If little arrives, less than a thirtieth of the
// smallest ring, the rings are drained less often.
constexpr Nanoseconds kDrainEvery = kSecond / 40, kDrainAtLeisure = kSecond / 10;
constexpr size_t kLittle = size_t{16} << 10;
// However much arrives, the end of the recording is noticed within this time.
constexpr Nanoseconds kLongestDrain = kSecond / 10;
// On an overloaded machine, where everything is late, a recording waits this long for its first sample.
constexpr Nanoseconds kFirstSample = 5 * kSecond;
// Censuses of many programs share their wake-ups.
constexpr Nanoseconds kCensusApart = kSecond / 100;
// The rings are drained this often during a census.
constexpr Nanoseconds kCensusSlice = kSecond / 200;
// After this time everything else is done first. The end of the recording waits for the last ones.
constexpr Nanoseconds kCensusesAtOnce = kSecond / 20, kLastCensuses = kSecond / 5;
constexpr Nanoseconds kProgressEvery = kSecond / 10;
constexpr Nanoseconds kCommitEvery = kSecond / 4;
constexpr Nanoseconds kNamesEvery = kSecond / 2;
// On a host with hundreds of CPUs, the kernel takes milliseconds to report their use.
constexpr Nanoseconds kCpusEvery = 5 * kSecond;

// A process that forks to start another program does so within this time.
constexpr Nanoseconds kTreeSettled = kSecond / 100;
// The maximum number of processes recorded at once; each has a thread of ours and some memory.
constexpr size_t kMostProcessesAtOnce = 1000;
// From this many on, each has a smaller ring.
constexpr size_t kManyProcesses = 4, kRingShareOfMany = 4;

}  // namespace

void LiveRecorder::begin_program(Finder::Found found) {
  const pid_t pid = found.program->pid;
  host_->meet(pid);
  const Backend::Begin begin = backend_->prepare(*found.program, found.pidfd);
  if (!begin) return;
  for (auto* birth : {&found.program->birth, &found.program->started})
    if (*birth) *birth = std::max(**birth, run_.start);
  const std::string& warning = found.program->interpreter.warning;
  auto& warnings = outcome_.warnings;
  if (!warning.empty() && std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
    warnings.push_back(warning);
  const KnownProcesses::Met met = known_.meet(pid, found.parent, found.program->image);
  const ProgramRecording::Shared shared{
      .options = options_,
      .output = *output_,
      .host = *host_,
      .begin = begin,
      .ring_share = active_.size() < kManyProcesses ? 1 : kRingShareOfMany,
  };
  note_other_mode(active_.add(std::make_unique<ProgramRecording>(
      met.row, met.parent, std::move(found.program), std::move(found.pidfd), shared)));
  if (met.is_fork)
    output_->sink.emit_meta(fmt::format("{}{}", profile::kForkedFrom, met.row.value),
                            std::to_string(met.parent->value));
  ++outcome_.processes;
  gaps_.end(host_->now());
  const auto& roots = roots_.pids;
  if (met.is_first && std::find(roots.begin(), roots.end(), pid) == roots.end() && options_.on_descendant)
    options_.on_descendant(pid);
}

void LiveRecorder::note_other_mode(const ProgramRecording& one) {
  const std::string& why = one.why_otherwise();
  if (why.empty()) return;
  auto& lines = options_.mode == Mode::kernel ? outcome_.warnings : outcome_.details;
  lines.push_back(fmt::format("process {} is sampled in another mode: {}", one.pid(), why));
  finder_->births_are_reported(false);  // about the processes that this one starts
}

void LiveRecorder::check_descendants(Nanoseconds now) {
  std::vector<pid_t> of = roots_.pids;
  for (const auto& one : active_) of.push_back(one->pid());
  host_->check_descendants(now, of, [this](pid_t pid) { return known_.contains(pid); });
}

bool LiveRecorder::is_recorded(pid_t pid) const {
  return std::any_of(active_.begin(), active_.end(),
                     [&](const auto& one) { return one->pid() == pid && !host_->has_ended(one->pidfd()); });
}

// Reported before the search finds them, even if they have ended.
void LiveRecorder::begin_births(Nanoseconds until) {
  for (Birth& one : backend_->births(until)) {
    const pid_t pid = one.program->pid;
    if (is_recorded(pid) || active_.size() >= kMostProcessesAtOnce) {
      backend_->leave(*one.program);
      continue;
    }
    auto pidfd = host_->watch(pid);
    known_.note_birth(pid);
    begin_program({std::move(one.program), pidfd ? *std::move(pidfd) : Descriptor(), one.parent});
  }
}

void LiveRecorder::begin_found() {
  auto found = finder_->take();
  if (!found.empty()) {
    backend_->drain(host_->now() + kLongestDrain);
    begin_births(host_->now() - kTreeSettled);
  }
  for (auto& one : found) {
    // A thousand at once take seconds to begin. Those left out are counted as not recorded.
    if (!active_.empty() && time_is_up()) break;
    const pid_t pid = one.program->pid;
    if (backend_->reports_births() && host_->image_of(pid) != one.program->image) {
      finder_->check_again(pid);
      continue;
    }
    const bool known =
        is_recorded(pid) || backend_->is_newborn(pid) || known_.may_be_found_late(pid, host_->now());
    if (!known) begin_program(std::move(one));
  }
}

void LiveRecorder::end_execs() {
  for (const Backend::Exec& exec : backend_->execs()) {
    if (const auto one = active_.first_of(exec.pid); exec.was_begun_with && one) {
      end_program(*one, End::exec);
    } else {
      finder_->check_again(exec.pid);
    }
  }
}

void LiveRecorder::end_program(size_t index, End end) {
  ProgramRecording& one = active_[index];
  one.finish(end, outcome_);
  add_to(outcome_.progress, one.numbers());
  if (one.why_no_python().empty()) {
    saw_python_ = true;
  } else {
    outcome_.why_no_python = one.why_no_python();
  }
  if (end == End::gone) known_.note_end(one.pid(), host_->now());
  if (end == End::exec) {
    known_.note_exec(one.pid());
    finder_->check_again(one.pid());
  }
  active_.remove(index);
}

// Waits until a process ends or is found, or the rings are due. Returns which of `active_` ended.
std::vector<size_t> LiveRecorder::wait_for_news() {
  std::vector<pollfd> all;
  bool none_to_wait_for = false;
  for (const auto& one : active_) {
    all.push_back({one->pidfd().get(), POLLIN, 0});
    none_to_wait_for |= !one->pidfd();
  }
  all.push_back({finder_->descriptor(), POLLIN, 0});
  all.push_back({backend_->descriptor(), POLLIN, 0});
  if (const int refused = host_->wait(all, none_to_wait_for ? 0 : longest_wait()); refused == 0) {
    refused_since_.reset();
  } else {
    note_refused_wait(refused);
  }
  std::vector<size_t> ended;
  for (size_t i = 0; i < active_.size(); ++i) {
    if (!active_[i].pidfd() || (all[i].revents & POLLIN) != 0) ended.push_back(i);
  }
  return ended;
}

// A single failure may be a passing lack of memory. If it lasts, no process would be seen to end any more.
void LiveRecorder::note_refused_wait(int error) {
  constexpr Nanoseconds kPatience = kSecond;
  const Nanoseconds now = host_->now();
  if (!refused_since_) refused_since_ = now;
  if (now - *refused_since_ < kPatience) return host_->sleep_until(now + kDrainEvery);
  outcome_.why = Ended::wait_failed;
  outcome_.error =
      Error{ErrorKind::system, fmt::format("cannot wait for processes: {} (poll)", std::strerror(error)),
            error == ENOMEM || error == EAGAIN
                ? "is there memory left? free -h"
                : "is there a filter of system calls (a container's seccomp profile)? allow poll"};
}

Nanoseconds LiveRecorder::longest_wait() const {
  Nanoseconds wait = until_rings_are_due();
  // A census is due at a random moment, so that no program runs in step with it.
  const Nanoseconds now = host_->now();
  for (const auto& one : active_) {
    if (const auto due = one->next_census()) wait = std::min(wait, std::max(*due - now, kCensusApart));
  }
  return wait;
}

Nanoseconds LiveRecorder::until_rings_are_due() const {
  if (pace_.came_much || backend_->has_newborn(host_->now()) || active_.empty() || options_.native)
    return kDrainEvery;
  if (!options_.duration) return kDrainAtLeisure;
  return std::clamp(run_.start + *options_.duration - host_->now(), kDrainEvery, kDrainAtLeisure);
}

void LiveRecorder::drain() {
  pace_.came_much = backend_->came_much() || std::any_of(active_.begin(), active_.end(), [](const auto& one) {
                      return one->waiting() > kLittle;
                    });
  const Nanoseconds deadline = host_->now() + kLongestDrain;
  for (bool more = true; more;) {
    more = backend_->drain(deadline) && host_->now() < deadline;
    begin_births(host_->now() - kTreeSettled);
    active_.drain(deadline);
  }
  pace_.drained_at = host_->now();
}

// Called during long work. Processes that began or ended are handled after it.
void LiveRecorder::drain_between() {
  const Nanoseconds now = host_->now();
  if (now - pace_.drained_at < kCensusSlice) return;
  const Nanoseconds deadline = now + kLongestDrain;
  backend_->drain(deadline);
  active_.drain(deadline);
  pace_.drained_at = host_->now();
}

void LiveRecorder::count_tasks(Nanoseconds now) {
  for (const auto& one : active_) {
    if (host_->now() - now > kCensusesAtOnce) return;  // the others follow a little later
    one->count_tasks(host_->now(), [this] { drain_between(); });
  }
}

// So that the last censuses cover the time until now.
void LiveRecorder::count_tasks_at_end() {
  const Nanoseconds until = host_->now() + kLastCensuses;
  for (const auto& one : active_) {
    if (host_->now() >= until) return;
    one->count_tasks_at_end(host_->now(), [this] { drain_between(); });
  }
}

void LiveRecorder::check_around() {
  for (size_t i = active_.size(); i-- > 0;) {
    if (active_[i].check_around()) end_program(i, End::exec);
  }
}

bool LiveRecorder::all_ended(Nanoseconds now) {
  if (!active_.empty() || options_.chosen) return false;
  const auto state = finder_->state();
  gaps_.begin(now, state.checks);
  if (gaps_.becomes_long(now) && options_.on_waiting) options_.on_waiting();
  return gaps_.is_last(now, state) &&
         std::all_of(roots_.pidfds.begin(), roots_.pidfds.end(),
                     [this](const Descriptor& pidfd) { return host_->has_ended(pidfd); });
}

// If only one is recorded at a time, the next one begins when it has ended.
void LiveRecorder::want_more() {
  const bool one = !options_.follow && !options_.chosen;
  finder_->want(one ? (active_.empty() ? 1 : 0)
                    : kMostProcessesAtOnce - std::min(active_.size(), kMostProcessesAtOnce));
}

Progress LiveRecorder::total() {
  Progress now = outcome_.progress;
  for (const auto& one : active_) add_to(now, one->numbers());
  const Nanoseconds time = host_->now();
  now.elapsed = time - run_.start - gaps_.total(time);
  (options_.rate_is_limit ? now.most_rate_hz : now.asked_rate_hz) = options_.rate_hz;
  now.max_overhead_percent = options_.max_overhead_percent.value_or(0);
  if (now.sampled_time > 0)
    now.rate_hz = static_cast<double>(now.ticks) * 1e9 / static_cast<double>(now.sampled_time);
  now.recorder_cpu = host_->read_clock(CLOCK_PROCESS_CPUTIME_ID) - run_.cpu_start;
  now.processes = active_.size();
  return now;
}

void LiveRecorder::warn() {
  auto& warnings = outcome_.warnings;
  const auto state = finder_->state();
  if (!state.refused.empty()) {
    warnings.push_back(not_every_python(options_.chosen != nullptr, state.refused));
    std::string sentence = warnings.back();
    sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
    outcome_.not_read.push_back(std::move(sentence));
  }
  if (!outcome_.not_read.empty())
    output_->sink.emit_meta(std::string(profile::kCouldNotBeRead),
                            fmt::format("{}", fmt::join(outcome_.not_read, ". ")));
  const pid_t another = known_.became_another();
  const bool root = std::find(roots_.pids.begin(), roots_.pids.end(), another) != roots_.pids.end();
  if (const std::string now = root ? host_->image_of(another).executable : ""; !now.empty())
    warnings.push_back(became_another(another, now));
  if (const Backend::Brief brief = backend_->too_brief(); brief.programs > 0)
    warnings.push_back(pythons_too_brief(brief.programs, brief.command_line));
  const auto& brief = state.too_brief;
  const auto reported = std::count_if(brief.ids.begin(), brief.ids.end(),
                                      [this](pid_t pid) { return backend_->has_reported(pid); });
  if (const size_t unreported = brief.processes - static_cast<size_t>(reported); unreported > 0)
    warnings.push_back(forks_too_brief(unreported, brief.command_line));
  if (const std::string refused = host_->ends_refused(); !refused.empty())
    warnings.push_back(ends_refused(refused));
  for (std::string& refusal : refusals(options_, outcome_.progress)) warnings.push_back(std::move(refusal));
}

void LiveRecorder::begin(profile::Sink& sink) {
  output_.emplace(sink, task_sink_);
  run_.start = host_->now();
  // A program that we started had begun before its Python was up.
  backend_->drain(run_.start + kLongestDrain);
  for (const auto& one : roots_.programs) {
    backend_->note_start(*one.program);
    if (options_.launched && one.program->started) run_.start = std::min(run_.start, *one.program->started);
  }
  run_.cpu_start = host_->read_clock(CLOCK_PROCESS_CPUTIME_ID);
  put_host(*host_, sink, run_.start);
  sink.emit_meta("command_line", options_.command_line);
  sink.emit_meta("rate_hz", fmt::format("{:g}", options_.rate_hz));
  profile::Event event;
  event.kind = profile::EventKind::recording_start;
  event.time = run_.start;
  sink.emit(event);

  backend_->start([this](Nanoseconds now) { finder_->help(now); });
  finder_ = host_->find_programs(roots_.pids, options_, roots_.programs);
  finder_->births_are_reported(backend_->reports_births());
  for (auto& one : std::exchange(roots_.programs, {})) begin_program(std::move(one));
  check_descendants(run_.start);
  want_more();
  pace_.commit = host_->now() + kCommitEvery;
  // Names come soon, for the readers of a short recording, and then less often.
  pace_.names = host_->now() + kDrainEvery;
}

// Handles the processes that ended, and those that began.
void LiveRecorder::meet_news() {
  const std::vector<size_t> ended = wait_for_news();
  drain();
  std::for_each(ended.rbegin(), ended.rend(), [this](size_t index) { end_program(index, End::gone); });
  end_execs();
  begin_found();
  want_more();
}

bool LiveRecorder::time_is_up() const {
  return (run_.stop != nullptr && *run_.stop) ||
         (options_.duration && host_->now() - run_.start >= *options_.duration);
}

bool LiveRecorder::is_over(Nanoseconds now) {
  if (all_ended(now)) {
    outcome_.why = Ended::target_ended;
    return true;
  }
  if (!options_.duration) return false;
  const bool sampled = std::any_of(active_.begin(), active_.end(), [](auto& one) { return one->sampled(); });
  if (now - run_.start < *options_.duration + (sampled || waits_for_nobody() ? 0 : kFirstSample))
    return false;
  outcome_.why = Ended::duration;
  return true;
}

void LiveRecorder::put_what_is_due(Nanoseconds now, const std::function<void(const Progress&)>& progress) {
  if (now >= pace_.names) {
    check_around();
    pace_.names = now + kNamesEvery;
  }
  count_tasks(now);
  for (const auto& one : active_) one->put_changes(now, outcome_.warnings);
  if (now >= pace_.progress) {
    progress(total());
    pace_.progress = now + kProgressEvery;
  }
  if (host_->descendants_are_due(now)) check_descendants(now);
  if (now < pace_.commit) return;
  output_->identities.flush();
  for (const auto& one : active_) {
    one->put_counters();
    one->put_native_files(now);
  }
  put_recorder_counters(output_->sink, total());
  if (now >= pace_.cpus) {
    host_->put_cpu_use(output_->sink);
    pace_.cpus = now + kCpusEvery;
  }
  commit();
  pace_.commit = host_->now() + kCommitEvery;
}

void LiveRecorder::commit() {
  if (outcome_.why == Ended::sink_failed) return;
  auto done = output_->sink.commit();
  if (done) return;
  outcome_.error = done.error();
  outcome_.why = Ended::sink_failed;
}

Outcome LiveRecorder::run(profile::Sink& sink, const std::atomic<bool>& stop,
                          const std::function<void(const Progress&)>& progress) {
  run_.stop = &stop;
  begin(sink);
  while (!stop.load(std::memory_order_relaxed) && !outcome_.error) {
    meet_news();
    const Nanoseconds now = host_->now();
    if (is_over(now)) break;
    put_what_is_due(now, progress);
  }
  count_tasks_at_end();
  drain();
  begin_births(host_->now());
  end_execs();
  for (size_t i = active_.size(); i-- > 0;)
    end_program(i, host_->has_ended(active_[i].pidfd()) ? End::gone : End::recording_ended);
  if (outcome_.why == Ended::target_ended) outcome_.how_target_ended = host_->how_ended(roots_.pidfds[0]);
  if (saw_python_) outcome_.why_no_python.clear();
  profile::Event last;
  last.kind = profile::EventKind::recording_end;
  last.time = host_->now();
  sink.emit(last);
  sink.emit_meta("end_monotonic_ns", std::to_string(last.time));
  outcome_.progress = total();
  put_recorder_counters(sink, outcome_.progress);
  check_descendants(last.time);
  host_->put_cpu_use(sink);
  warn();
  finder_.reset();
  commit();
  return std::move(outcome_);
}

}  // namespace phlox::sampler
