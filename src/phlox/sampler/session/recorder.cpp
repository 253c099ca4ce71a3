#include "phlox/sampler/session/recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/profile/tally.h"
#include "phlox/sampler/assemble/consumer.h"
#include "phlox/sampler/session/program.h"
#include "phlox/sampler/session/sampler_thread.h"

namespace phlox::sampler {
namespace {

namespace tally = profile::tally;

// What a busy sampler writes in a tenth of a second: 100,000 looks a second with a few new frames each.
constexpr size_t kRingBytes = size_t{4} << 20;
// With stacks of some 10 KB a look; longer ones at 1 kHz fill it in a quarter of a second.
constexpr size_t kNativeRingBytes = size_t{16} << 20;
constexpr Nanoseconds kDrainEvery = kSecond / 40;
// However much comes, the end of the recording is seen this soon.
constexpr Nanoseconds kLongestDrain = kSecond / 10;
// Where everything is late, as on a machine with far too much to do, a recording waits so long for its first
// look.
constexpr Nanoseconds kFirstLook = 5 * kSecond;
// For what is on its way still as it ends.
constexpr Nanoseconds kLastDrain = kSecond;
constexpr Nanoseconds kProgressEvery = kSecond / 10;
constexpr Nanoseconds kCommitEvery = kSecond / 4;
constexpr Nanoseconds kNamesEvery = kSecond / 2;

// Every count, once: what the sampler thread calls it, what it is called in a recording.
struct Counted {
  uint64_t Progress::*total;
  uint64_t Counts::*count;
  std::string_view name;
};
constexpr Counted kCounted[] = {
    {&Progress::ticks, &Counts::ticks, tally::kTicks},
    {&Progress::samples, &Counts::samples, tally::kSamples},
    {&Progress::retried, &Counts::retried, tally::kRetried},
    {&Progress::detached, &Counts::detached, tally::kDetached},
    {&Progress::cut, &Counts::cut, tally::kCut},
    {&Progress::unproved, &Counts::unproved, tally::kUnproved},
    {&Progress::rejected_moved, &Counts::moved, tally::kRejectedMoved},
    {&Progress::rejected_unreadable, &Counts::unreadable, tally::kRejectedUnreadable},
    {&Progress::rejected_broken, &Counts::broken, tally::kRejectedBroken},
    {&Progress::stops, &Counts::stops, tally::kStops},
    {&Progress::stop_refused, &Counts::stop_refused, tally::kStopRefused},
    {&Progress::cpu_refused, &Counts::cpu_refused, tally::kCpuRefused},
    {&Progress::lost, &Counts::lost, tally::kLost},
    {&Progress::left_out, &Counts::not_read, tally::kLeftOut},
};

// A recording ends in time even when no Python ever comes.
Patience patience(bool patient, const Options& options, Nanoseconds start) {
  Patience p;
  p.patient = patient;
  if (options.duration) p.until = start + *options.duration;
  return p;
}

Patience patience_with_descendants(const Options& options, Nanoseconds start) {
  Patience p = patience(options.launched, options, start);
  p.descendants = options.launched;
  p.waiting = options.on_waiting;
  return p;
}

// Of the process behind a descriptor.
std::string how_it_ended(const Descriptor& pidfd) {
  siginfo_t info{};
  // Only a child tells; it stays to be reaped by whoever started it. glibc has no name for P_PIDFD
  // before 2.36.
  constexpr auto kPidfd = static_cast<idtype_t>(3);
  if (::waitid(kPidfd, static_cast<id_t>(pidfd.get()), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid != 0) {
    if (info.si_code == CLD_EXITED) return fmt::format("exit {}", info.si_status);
    return fmt::format("signal {} (SIG{})", info.si_status,
                       ::sigabbrev_np(info.si_status) ? ::sigabbrev_np(info.si_status) : "?");
  }
  return "ended";
}

// What could not be done as it is done by default, and what was done instead.
void warn_of_refusals(const Options& options, const Progress& progress, std::vector<std::string>& warnings) {
  if (progress.cpu_refused > 0) {
    const bool stops = options.way == Way::automatic && progress.stops > 0;
    warnings.push_back(fmt::format(
        "{} looks found their thread on a CPU that phlox may not use (a cpuset of its own, or a CPU that is "
        "kept free): {}",
        progress.cpu_refused,
        stops ? "it was stopped for microseconds instead (--way same-cpu stops nobody)"
              : "it was read as it ran, unproved"));
  }
  if (progress.stop_refused > 0) {
    warnings.push_back(fmt::format(
        "{} looks at threads that could not be stopped (somebody else traces them, or phlox has no "
        "right to): {}",
        progress.stop_refused,
        options.native ? "they are without native frames" : "they were read as they ran, unproved"));
  }
}

std::string why_no_python(const SamplerThread::Numbers& numbers, bool ended) {
  if (numbers.counts.ticks == 0)
    return ended ? "it ended before the first look" : "the recording ended before the first look";
  if (numbers.stateless.states == 0) return "none of its threads was in Python when it was looked at";
  return fmt::format(
      "it has {} thread state{} of Python, and none belongs to a thread of this process that could be found: "
      "it forked in a way of its own",
      numbers.stateless.states, numbers.stateless.states == 1 ? "" : "s");
}

class LiveRecorder : public Recorder {
 public:
  // `root` is watched by `root_pidfd`, and `program` runs in it or in a descendant.
  LiveRecorder(pid_t root, const Options& options, Descriptor root_pidfd, Descriptor pidfd,
               std::unique_ptr<Program> program)
      : root_(root),
        root_pidfd_(std::move(root_pidfd)),
        pid_(program->pid),
        options_(options),
        pidfd_(std::move(pidfd)),
        program_(std::move(program)) {}

  Outcome run(profile::Sink& sink, const std::atomic<bool>& stop,
              const std::function<void(const Progress&)>& progress) override;

  std::string description() const override { return program_->description(); }
  pid_t pid() const override { return pid_; }

 private:
  enum class ProgramEnd { stopped, duration, gone, exec, sink_failed };

  ProgramEnd record(profile::Sink& sink, Identities& identities, profile::ProcessId process,
                    const std::atomic<bool>& stop, const std::function<void(const Progress&)>& progress,
                    Outcome& outcome);
  void put_process(profile::Sink& sink, profile::ProcessId id, Nanoseconds end, const std::string& how,
                   const std::string& way);
  bool gone(int timeout_ms) const;
  bool go_on_with_descendant(const std::atomic<bool>& stop, Outcome& outcome);
  bool go_on_after_exec(const std::atomic<bool>& stop, Outcome& outcome);

  pid_t root_;
  Descriptor root_pidfd_;
  pid_t pid_;
  Options options_;
  Descriptor pidfd_;
  std::unique_ptr<Program> program_;
  profile::Process process_row_;
  Nanoseconds start_ = 0;
  Nanoseconds idle_ = 0;  // without a Python, between two programs
  Nanoseconds cpu_start_ = 0;
  Progress done_;  // of the programs before
  bool saw_python_ = false;
};

bool LiveRecorder::gone(int timeout_ms) const {
  pollfd poll{pidfd_.get(), POLLIN, 0};
  return ::poll(&poll, 1, timeout_ms) > 0 && (poll.revents & POLLIN) != 0;
}

void LiveRecorder::put_process(profile::Sink& sink, profile::ProcessId id, Nanoseconds end,
                               const std::string& how, const std::string& way) {
  process_row_.end = end;
  process_row_.how_ended = how;
  process_row_.way_of_reading = way;
  sink.put_process(id, process_row_);
}

LiveRecorder::ProgramEnd LiveRecorder::record(profile::Sink& sink, Identities& identities,
                                              profile::ProcessId process, const std::atomic<bool>& stop,
                                              const std::function<void(const Progress&)>& progress,
                                              Outcome& outcome) {
  Ring ring(options_.native ? kNativeRingBytes : kRingBytes);
  const python::Interpreter& interpreter = program_->interpreter;
  Consumer consumer(interpreter.layout, process, sink, identities, [this](profile::Thread& thread) {
    thread.kernel_name = target::ThreadProbe(pid_, thread.tid).kernel_name();
  });
  // Memory of its own: the sampler's is another thread's.
  memory::ProcessMemory native_memory(pid_);
  std::optional<NativeStacks> native;
  if (options_.native) {
    native.emplace(pid_, native_memory, identities, sink, options_.unwind_cache);
    consumer.with_native(*native);
  }
  ProcessSampler::Config config;
  config.pid = pid_;
  config.native = options_.native;
  config.rseq_cpu_offset = program_->rseq_cpu_offset;
  config.way = options_.way;
  // Who asked for a way without stops gets none for the native half either, but where he asked for those.
  if (config.native == NativeSource::automatic &&
      (options_.way == Way::same_cpu || options_.way == Way::hands_off))
    config.native = NativeSource::perf;
  SamplerThread sampler(config, options_, interpreter, program_->memory, ring);

  const Progress before = done_;
  const uint64_t left_out_before = identities.interner.left_out();
  const auto total = [&] {
    const auto numbers = sampler.numbers();
    Progress now = before;
    for (const Counted& c : kCounted) now.*c.total += numbers.counts.*c.count;
    now.elapsed = clock_now() - start_ - idle_;
    now.ticks_missed += numbers.ticks_missed;
    now.target_time += numbers.target_time;
    now.rests += numbers.rests;
    (options_.rate_is_limit ? now.most_rate_hz : now.asked_rate_hz) = options_.rate_hz;
    now.max_overhead_percent = options_.max_overhead_percent.value_or(0);
    now.rate_hz =
        now.elapsed > 0 ? static_cast<double>(now.ticks) * 1e9 / static_cast<double>(now.elapsed) : 0;
    now.way = describe_way(numbers);
    now.recorder_cpu = clock_now(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_;
    now.lost += consumer.discarded();
    now.left_out += consumer.without_line() + identities.interner.left_out() - left_out_before;
    if (native) now.native += native->counts();
    now.native_without_event = std::max(now.native_without_event, numbers.events.without);
    return now;
  };

  std::string way;
  double rate = -1;
  Nanoseconds next_progress = 0;
  Nanoseconds next_commit = clock_now() + kCommitEvery;
  // Names soon, for those who look at a short recording, and then at leisure.
  Nanoseconds next_names = clock_now() + kDrainEvery;
  ProgramEnd end = ProgramEnd::stopped;
  const auto name_threads = [&] {
    auto& live = consumer.live_threads();
    if (std::none_of(live.begin(), live.end(), [](const auto& t) { return t.row.name.empty(); })) return;
    program_->name_threads(consumer);
  };
  for (;;) {
    if (stop.load(std::memory_order_relaxed)) break;
    const bool ended = gone(static_cast<int>(kDrainEvery / 1'000'000));
    consumer.drain(ring, clock_now() + kLongestDrain);
    const Nanoseconds now = clock_now();
    if (ended) {
      end = ProgramEnd::gone;
      break;
    }
    const bool looked = sampler.numbers().counts.ticks > 0;
    if (options_.duration && now - start_ >= *options_.duration + (looked ? 0 : kFirstLook)) {
      end = ProgramEnd::duration;
      break;
    }
    if (now >= next_names) {
      name_threads();
      std::vector<pid_t> threads;
      for (const auto& thread : consumer.live_threads()) threads.push_back(thread.row.tid);
      sampler.stay_above(threads);
      next_names = now + kNamesEvery;
      const Image image = image_of(pid_);
      if (!image.executable.empty() && image != program_->image) {
        end = ProgramEnd::exec;
        break;
      }
    }
    const Progress numbers = total();
    if (const auto n = sampler.numbers(); n.rate_hz > 0 && std::abs(n.rate_hz - rate) > 0.5) {
      if (rate >= 0) {
        profile::Event event;
        event.kind = profile::EventKind::rate_change;
        event.time = now;
        event.process = process;
        event.value = static_cast<int64_t>(n.rate_hz * 1000);
        event.text = n.rate_hz < rate ? "to stay within --max-overhead" : "within --max-overhead again";
        sink.put_event(event);
        if (n.rate_hz < rate && !options_.rate_is_limit && outcome.warnings.empty()) {
          outcome.warnings.push_back(
              fmt::format("rate lowered to {:.0f} Hz to stay within --max-overhead {:g} %", n.rate_hz,
                          options_.max_overhead_percent.value_or(0)));
        }
      }
      rate = n.rate_hz;
    }
    if (numbers.ticks > before.ticks && numbers.way != way) {
      if (!way.empty()) {
        profile::Event event;
        event.kind = profile::EventKind::way_change;
        event.time = now;
        event.process = process;
        event.text = numbers.way;
        sink.put_event(event);
      }
      way = numbers.way;
      put_process(sink, process, 0, "", way);
    }
    if (now >= next_progress) {
      progress(numbers);
      next_progress = now + kProgressEvery;
    }
    if (now >= next_commit) {
      identities.stretches.flush();
      put_tallies(sink, process, numbers, before);
      if (auto done = sink.commit(); !done) {
        outcome.error = done.error();
        end = ProgramEnd::sink_failed;
        break;
      }
      next_commit = now + kCommitEvery;
    }
  }
  if (end == ProgramEnd::stopped || end == ProgramEnd::duration) name_threads();
  sampler.stop();
  consumer.drain(ring, clock_now() + kLastDrain);
  consumer.discard(ring);
  identities.stretches.flush();
  done_ = total();
  if (native) {
    for (NativeModule& module : native->take_modules()) outcome.modules.push_back(std::move(module));
    for (std::string& line : details_of(sampler.numbers())) outcome.details.push_back(std::move(line));
  }
  put_tallies(sink, process, done_, before);
  const std::string how = end == ProgramEnd::gone   ? how_it_ended(pidfd_)
                          : end == ProgramEnd::exec ? "exec"
                                                    : "recording ended";
  if (end == ProgramEnd::gone) outcome.how_target_ended = how;
  const auto numbers = sampler.numbers();
  if (numbers.counts.reads > 0) {
    outcome.why_no_python.clear();
    saw_python_ = true;
  } else if (!saw_python_) {
    outcome.why_no_python = why_no_python(numbers, end == ProgramEnd::gone);
  }
  if (numbers.stateless.unknown > 0) {
    outcome.warnings.push_back(fmt::format(
        "{} thread{} of the program {} missing: which of its threads runs {} could not be found out",
        numbers.stateless.unknown, numbers.stateless.unknown == 1 ? "" : "s",
        numbers.stateless.unknown == 1 ? "is" : "are",
        numbers.stateless.unknown == 1 ? "a thread state of Python" : "thread states of Python"));
  }
  put_process(sink, process, clock_now(), how, done_.way);
  return end;
}

// Whether there is another program to record; else the outcome says why not.
bool LiveRecorder::go_on_after_exec(const std::atomic<bool>& stop, Outcome& outcome) {
  auto next = find_program(pid_, pidfd_, patience(true, options_, start_), stop);
  if (next) {
    program_ = std::move(*next);
    return true;
  }
  if (gone(0)) {
    outcome.how_target_ended = how_it_ended(pidfd_);
    outcome.why = Ended::target_ended;
    return pid_ != root_ && go_on_with_descendant(stop, outcome);
  }
  const bool over = options_.duration && clock_now() - start_ >= *options_.duration;
  outcome.why = over ? Ended::duration : Ended::stopped;
  outcome.warnings.push_back(fmt::format("after it became another program: {}", next.error().message));
  return false;
}

bool LiveRecorder::go_on_with_descendant(const std::atomic<bool>& stop, Outcome& outcome) {
  for (;;) {
    auto next = find_program(root_, root_pidfd_, patience_with_descendants(options_, start_), stop);
    if (!next) {
      pollfd poll{root_pidfd_.get(), POLLIN, 0};
      if (::poll(&poll, 1, 0) > 0) {
        outcome.how_target_ended = how_it_ended(root_pidfd_);
        outcome.why = Ended::target_ended;
      } else {
        outcome.why = stop ? Ended::stopped : Ended::duration;
      }
      return false;
    }
    auto pidfd = watch((*next)->pid);
    if (!pidfd) continue;  // it ended at once
    program_ = std::move(*next);
    pid_ = program_->pid;
    pidfd_ = *std::move(pidfd);
    if (pid_ != root_ && options_.on_descendant) options_.on_descendant(pid_);
    return true;
  }
}

Outcome LiveRecorder::run(profile::Sink& sink, const std::atomic<bool>& stop,
                          const std::function<void(const Progress&)>& progress) {
  Outcome outcome;
  start_ = clock_now();
  cpu_start_ = clock_now(CLOCK_PROCESS_CPUTIME_ID);
  put_host(sink, start_);
  sink.put_meta("command_line", options_.command_line);
  sink.put_meta("rate_hz", fmt::format("{:g}", options_.rate_hz));
  profile::Event event;
  event.kind = profile::EventKind::recording_start;
  event.time = start_;
  sink.put_event(event);

  Identities identities(sink);
  uint32_t next_process = 1;
  for (;;) {
    const profile::ProcessId id(next_process++);
    process_row_ = program_->process_row();
    if (!program_->interpreter.warning.empty()) outcome.warnings.push_back(program_->interpreter.warning);
    put_process(sink, id, 0, "", "");
    event.kind = profile::EventKind::process_start;
    event.time = process_row_.start;
    event.process = id;
    event.text = process_row_.executable;
    sink.put_event(event);

    const ProgramEnd end = record(sink, identities, id, stop, progress, outcome);
    event.kind = end == ProgramEnd::exec ? profile::EventKind::exec : profile::EventKind::process_end;
    event.time = clock_now();
    event.text = end == ProgramEnd::exec ? image_of(pid_).executable : process_row_.how_ended;
    if (end == ProgramEnd::exec || end == ProgramEnd::gone) sink.put_event(event);
    if (end == ProgramEnd::exec || (end == ProgramEnd::gone && pid_ != root_)) {
      // What is there so far stays, however long the next one takes to come.
      if (auto committed = sink.commit(); !committed) {
        outcome.error = committed.error();
        outcome.why = Ended::sink_failed;
        break;
      }
      const Nanoseconds from = clock_now();
      const bool goes_on =
          end == ProgramEnd::exec ? go_on_after_exec(stop, outcome) : go_on_with_descendant(stop, outcome);
      if (!goes_on) break;
      idle_ += clock_now() - from;
      continue;
    }
    outcome.why = end == ProgramEnd::gone          ? Ended::target_ended
                  : end == ProgramEnd::duration    ? Ended::duration
                  : end == ProgramEnd::sink_failed ? Ended::sink_failed
                                                   : Ended::stopped;
    break;
  }
  profile::Event last;
  last.kind = profile::EventKind::recording_end;
  last.time = clock_now();
  sink.put_event(last);
  sink.put_meta("end_monotonic_ns", std::to_string(last.time));
  outcome.progress = done_;
  warn_of_refusals(options_, done_, outcome.warnings);
  if (!outcome.error) {
    if (auto committed = sink.commit(); !committed) {
      outcome.error = committed.error();
      outcome.why = Ended::sink_failed;
    }
  }
  return outcome;
}

}  // namespace

void put_tallies(profile::Sink& sink, profile::ProcessId process, const Progress& now,
                 const Progress& before) {
  const auto put = [&](profile::ProcessId of, std::string_view name, auto value) {
    sink.put_tally({of, std::string(name), static_cast<int64_t>(value)});
  };
  for (const Counted& c : kCounted) put(process, c.name, now.*c.total - before.*c.total);
  put(process, tally::kTicksMissed, now.ticks_missed - before.ticks_missed);
  put(process, tally::kTargetTime, now.target_time - before.target_time);
  if (now.native.looks > 0) {
    put(process, tally::kNative, now.native.looks - before.native.looks);
    put(process, tally::kNativeWhole, now.native.whole - before.native.whole);
    put(process, tally::kNativeRestarted, now.native.restarted - before.native.restarted);
    put(process, tally::kNativeCut, now.native.cut - before.native.cut);
    put(process, tally::kNativeUnmerged, now.native.unmerged - before.native.unmerged);
    put(process, tally::kNativeWithoutEvent, now.native_without_event);
  }
  put({}, tally::kRecorderTime, now.recorder_cpu);
  put({}, tally::kAskedRate, now.asked_rate_hz * 1000);
  put({}, tally::kMostRate, now.most_rate_hz * 1000);
  put({}, tally::kMaxOverhead, now.max_overhead_percent * 1e4);
  put({}, tally::kElapsed, now.elapsed);
}

Result<std::unique_ptr<Recorder>> Recorder::attach(pid_t pid, const Options& options,
                                                   const std::atomic<bool>& stop,
                                                   std::vector<python::Attempt>* attempts) {
  auto pidfd = watch(pid);
  if (!pidfd) return fail(pidfd);
  // Descriptors are kept open for each thread: take what the hard limit grants.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  for (;;) {
    auto program = find_program(pid, *pidfd, patience_with_descendants(options, clock_now()), stop, attempts);
    if (!program) return fail(program);
    const pid_t found = (*program)->pid;
    auto its_pidfd = watch(found);
    if (!its_pidfd && found != pid) continue;  // it ended at once
    if (!its_pidfd) return fail(its_pidfd);
    if (found != pid && options.on_descendant) options.on_descendant(found);
    return std::make_unique<LiveRecorder>(pid, options, std::move(*pidfd), *std::move(its_pidfd),
                                          *std::move(program));
  }
}

}  // namespace phlox::sampler
