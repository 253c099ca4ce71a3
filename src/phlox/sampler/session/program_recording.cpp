#include "phlox/sampler/session/program_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "phlox/profile/counters.h"
#include "phlox/profile/kept.h"
#include "phlox/profile/recorded_words.h"
#include "phlox/profile/source_rights.h"
#include "phlox/python/process_name.h"
#include "phlox/sampler/session/rank.h"
#include "phlox/sampler/session/sampler_thread.h"

namespace phlox::sampler {
namespace {

namespace counters = profile::counters;

// What a busy sampler writes in a tenth of a second: 100,000 samples a second with a few new frames each.
constexpr size_t kRingBytes = size_t{4} << 20;
// For stacks of about 10 KB per sample; longer ones at 1 kHz fill it in a quarter of a second.
constexpr size_t kNativeRingBytes = size_t{16} << 20;
// A title that changes more often says what the process does ("[pytest-xdist running] test_a"), not which
// process it is.
constexpr int kMostTitles = 2;
// A worker has its name within half a minute.
constexpr int kMostNameTries = 60;
constexpr Nanoseconds kTasksEvery = kSecond, kRestPerPut = 100;
// A compiler may have written 100 MB.
constexpr Nanoseconds kJitFilesEvery = 15 * kSecond;
// For records that are still underway at the end.
constexpr Nanoseconds kLastDrain = kSecond;

// Every count, once: its members, and its name in a recording.
struct Counted {
  uint64_t Progress::*total;
  uint64_t Counts::*count;
  std::string_view name;
};
constexpr Counted kCounted[] = {
    {&Progress::ticks, &Counts::ticks, counters::kTicks},
    {&Progress::samples, &Counts::samples, counters::kSamples},
    {&Progress::retried, &Counts::retried, counters::kRetried},
    {&Progress::detached, &Counts::detached, counters::kDetached},
    {&Progress::cut, &Counts::cut, counters::kCut},
    {&Progress::unproved, &Counts::unproved, counters::kUnproved},
    {&Progress::rejected_moved, &Counts::moved, counters::kRejectedMoved},
    {&Progress::rejected_unreadable, &Counts::unreadable, counters::kRejectedUnreadable},
    {&Progress::rejected_broken, &Counts::broken, counters::kRejectedBroken},
    {&Progress::stops, &Counts::stops, counters::kStops},
    {&Progress::stop_refused, &Counts::stop_refused, counters::kStopRefused},
    {&Progress::cpu_refused, &Counts::cpu_refused, counters::kCpuRefused},
    {&Progress::lost, &Counts::lost, counters::kLost},
    {&Progress::left_out, &Counts::not_read, counters::kLeftOut},
};

std::string why_no_python(const SourceNumbers& numbers, bool ended) {
  if (numbers.counts.ticks == 0)
    return ended ? "it ended before the first sample" : "the recording ended before the first sample";
  if (numbers.stateless.states == 0) return "none of its threads was in Python when it was sampled";
  return fmt::format(
      "it has {} thread state{} of Python, and none belongs to a thread of this process that could be found: "
      "it forked in a way of its own",
      numbers.stateless.states, numbers.stateless.states == 1 ? "" : "s");
}

}  // namespace

ProgramRecording::ProgramRecording(profile::ProcessId id, std::optional<profile::ProcessId> parent,
                                   std::unique_ptr<Program> program, Descriptor pidfd, const Shared& shared)
    : id_(id),
      pidfd_(std::move(pidfd)),
      options_(shared.options),
      host_(shared.host),
      sink_(shared.output.sink),
      identities_(shared.output.identities),
      program_(std::move(program)),
      row_(program_->process_row(host_.facts(program_->pid), host_.now())),
      ring_((options_.native ? kNativeRingBytes : kRingBytes) / shared.ring_share),
      memory_(program_->pid),
      queues_(program_->interpreter.layout, memory_),
      context_(program_->pid, id, host_.environment(program_->pid), sink_),
      used_at_its_end_(host_.watch_end(program_->pid, pidfd_)),
      files_(program_->pid, shared.output.files),
      consumer_(program_->interpreter.layout, id, sink_, identities_,
                [this, pid = program_->pid, born_as = program_->kernel_name](profile::Thread& thread) {
                  thread.kernel_name = host_.thread_name(pid, thread.tid);
                  // The process has ended already.
                  if (thread.kernel_name.empty() && thread.tid == pid) thread.kernel_name = born_as;
                }),
      clock_(program_->pid),
      begin_(row_.start),
      sampled_from_(program_->started ? host_.now() : begin_) {
  row_.parent = parent;
  program_->known_as = row_;
  // Before its row, so that the sink knows which process it is.
  const Host::Identity identity = host_.identity(pid());
  if (identity.start_ticks)
    sink_.emit_meta(fmt::format("{}{}", profile::kStartTicks, pid()), std::to_string(*identity.start_ticks));
  if (identity.rights) sink_.emit_meta(profile::source_rights_key(*identity.rights), "");
  put_process(0, "", "");
  profile::Event event;
  event.kind = profile::EventKind::process_start;
  event.time = row_.start;
  event.process = id_;
  event.text = row_.executable;
  sink_.emit(event);
  if (options_.native) {
    native_.emplace(program_->pid, memory_, identities_, sink_, options_.unwind_cache);
    consumer_.with_native(*native_);
  }
  files_.begin();
  consumer_.with_wait_targets(files_);
  consumer_.with_end(program_->pid, [this] { return used_at_end(); });
  if (program_->started) consumer_.with_start(*program_->started);
  // A fork has none of its parent's kernel threads.
  if (!program_->birth) kernel_threads_ = host_.kernel_workers(pid());
  Backend::Begun begun = shared.begin(ring_);
  source_ = std::move(begun.source);
  why_otherwise_ = std::move(begun.why_otherwise);
  if (shared.output.tasks != nullptr) {
    census_.emplace(host_, id_, begin_, program_->interpreter, memory_, clock_, *shared.output.tasks,
                    identities_.interner, shared.output.task_ids, options_.max_overhead_percent,
                    options_.rate_hz);
    routes_.emplace(pid(), program_->interpreter, memory_, sink_, begin_);
  }
  look_at_context();
}

void ProgramRecording::look_at_context() {
  if (const auto found = context_.look(host_.now())) source_->with_traces(*found);
}

// None: it is still running, or was reaped before.
std::optional<Nanoseconds> ProgramRecording::used_at_end() const {
  if (const auto end = source_ ? source_->end() : std::nullopt) return end->used;
  return host_.has_ended(pidfd_) ? used_at_its_end_() : std::nullopt;
}

void ProgramRecording::put_process(Nanoseconds end, const std::string& how, const std::string& mode) {
  row_.end = end;
  row_.how_ended = how;
  row_.mode = mode;
  sink_.emit(id_, row_);
}

void ProgramRecording::drain(Nanoseconds deadline) {
  const uint64_t before = identities_.interner.left_out();
  consumer_.drain(ring_, [&] { return host_.now() >= deadline; });
  left_out_ += identities_.interner.left_out() - before;
}

// None: it cannot be read.
RemoteAddress ProgramRecording::first_interpreter() {
  RemoteAddress first;
  const bool read = memory_.read_value(program_->interpreter.interpreters_head, first.value);
  return read && is_plausible(first) ? first : RemoteAddress();
}

void ProgramRecording::name_threads() {
  auto& live = consumer_.live_threads();
  if (std::none_of(live.begin(), live.end(), [](const auto& t) { return t.row.name.empty(); })) return;
  program_->name_threads(host_, consumer_);
}

const SourceNumbers& ProgramRecording::latest() {
  if (const uint64_t is = source_->published(); !latest_ || is != latest_is_) {
    latest_is_ = is;
    latest_ = source_->numbers();
  }
  return *latest_;
}

// What distinguishes it from others with the same command line. That may be known late: a worker's name is
// set after the fork, and so is a title.
void ProgramRecording::name_process() {
  if (titles_ <= kMostTitles) {
    const std::string title = host_.facts(pid()).command_line;
    // Asked after the title was read: it may be that of the program after an exec.
    if (!title.empty() && title != row_.command_line && !is_another_program()) {
      if (titles_++ == 0) started_as_ = row_.command_line;
      row_.command_line = titles_ <= kMostTitles ? title : started_as_;
      put_process(0, "", mode_);
    }
  }
  if (name_tries_ >= kMostNameTries) return;
  if (name_tries_++ == 0) {
    if (const std::string rank = rank_words(host_.environment(pid())); !rank.empty())
      sink_.emit_meta(fmt::format("{}{}", profile::kProcessRank, id_.value), rank);
  }
  const RemoteAddress first = first_interpreter();
  if (!first) return;
  const auto name = python::read_process_name(program_->interpreter.layout, memory_, first);
  if (!name || name->empty()) return;
  sink_.emit_meta(fmt::format("{}{}", profile::kProcessName, id_.value), *name);
  name_tries_ = kMostNameTries;
}

void ProgramRecording::count_calls() {
  const auto& live = consumer_.live_threads();
  if (live.size() < 2) return;
  const RemoteAddress first = first_interpreter();
  if (!first) return;
  for (const python::PoolQueue& queue : queues_.read(first)) {
    int64_t& last = calls_.try_emplace({queue.kind, queue.thread}, -1).first->second;
    if (last == queue.calls || calls_.size() > python::PoolQueues::kMostPools) continue;
    profile::Event event;
    event.kind = profile::EventKind::calls_waiting;
    event.time = host_.now();
    event.process = id_;
    event.value = queue.calls;
    event.text = queue.kind;
    if (queue.thread != 0) {
      const auto thread = std::find_if(
          live.begin(), live.end(), [&queue](const auto& one) { return one.row.python_id == queue.thread; });
      if (thread == live.end()) continue;
      event.thread = thread->id;
    }
    last = queue.calls;
    sink_.emit(event);
  }
}

void ProgramRecording::take_census(Nanoseconds now, const std::function<void()>& between) {
  const auto thread_of = [this](uint64_t python_id) {
    const auto& live = consumer_.live_threads();
    const auto thread = std::find_if(live.begin(), live.end(),
                                     [python_id](const auto& one) { return one.row.python_id == python_id; });
    return thread == live.end() ? profile::ThreadId() : thread->id;
  };
  census_->take(now, thread_of, between);
  routes_->look(now, between);
}

void ProgramRecording::count_tasks(Nanoseconds now, const std::function<void()>& between) {
  if (census_ && now >= census_->due() && !host_.has_ended(pidfd_)) take_census(now, between);
}

void ProgramRecording::count_tasks_at_end(Nanoseconds now, const std::function<void()>& between) {
  if (census_ && census_->has_tasks() && !host_.has_ended(pidfd_)) take_census(now, between);
}

std::optional<Nanoseconds> ProgramRecording::next_census() const {
  return census_ && census_->has_tasks() ? std::optional(census_->due()) : std::nullopt;
}

bool ProgramRecording::is_another_program() {
  const Image image = host_.image_of(pid());
  return !image.executable.empty() && image != program_->image;
}

bool ProgramRecording::check_around() {
  const auto used = clock_.used();
  const bool has_run = !used || std::exchange(used_, used) != used;
  uint32_t newest = 0;
  for (const auto& thread : consumer_.live_threads()) newest = std::max(newest, thread.id.value);
  // A process that has not run has not become another program, and has named no thread.
  if (!has_run && newest <= std::exchange(named_, std::max(named_, newest))) {
    look_at_context();
    return false;
  }
  named_ = std::max(named_, newest);
  if (is_another_program()) return true;
  name_threads();
  name_process();
  look_at_context();
  count_calls();
  std::vector<pid_t> threads;
  for (const auto& thread : consumer_.live_threads()) threads.push_back(thread.row.tid);
  source_->stay_above(threads);
  return false;
}

void ProgramRecording::put_changes(Nanoseconds now, std::vector<std::string>& warnings) {
  const auto& numbers = latest();
  if (std::exchange(changes_seen_, latest_is_) == latest_is_) return;
  if (numbers.rate_hz > 0 && std::abs(numbers.rate_hz - rate_) > 0.5) {
    if (rate_ >= 0) {
      profile::Event event;
      event.kind = profile::EventKind::rate_change;
      event.time = now;
      event.process = id_;
      event.value = static_cast<int64_t>(numbers.rate_hz * 1000);
      event.text = numbers.rate_hz < rate_ ? "to stay within --max-overhead" : "within --max-overhead again";
      sink_.emit(event);
      if (numbers.rate_hz < rate_ && !options_.rate_is_limit && warnings.empty()) {
        warnings.push_back(fmt::format("rate lowered to {:.0f} Hz to stay within --max-overhead {:g} %",
                                       numbers.rate_hz, options_.max_overhead_percent.value_or(0)));
      }
    }
    rate_ = numbers.rate_hz;
  }
  const std::string mode = describe_mode(numbers);
  if (numbers.counts.ticks == 0 || mode == mode_) return;
  if (!mode_.empty()) {
    profile::Event event;
    event.kind = profile::EventKind::mode_change;
    event.time = now;
    event.process = id_;
    event.text = mode;
    sink_.emit(event);
  }
  mode_ = mode;
  put_process(0, "", mode_);
}

Progress ProgramRecording::numbers() {
  const auto& numbers = latest();
  Progress now;
  for (const Counted& c : kCounted) now.*c.total = numbers.counts.*c.count;
  now.ticks_missed = numbers.ticks_missed;
  now.target_time = numbers.target_time;
  now.rests = numbers.rests;
  now.sampled_time = (end_ != 0 ? end_ : host_.now()) - sampled_from_;
  now.mode = describe_mode(numbers);
  now.lost += consumer_.discarded();
  now.left_out += consumer_.without_line() + left_out_;
  if (native_) now.native = native_->counts();
  now.native_without_event = numbers.events.without;
  now.kernel_threads = kernel_threads_;
  return now;
}

void ProgramRecording::put_counters() {
  Progress now = numbers();
  put_process_counters(sink_, id_, now, reported_ ? &*reported_ : nullptr);
  reported_ = std::move(now);
  // A program may have thousands of places where tasks wait.
  if (const Nanoseconds begun = host_.now(); census_ && (end_ != 0 || begun >= next_tasks_)) {
    census_->put();
    const Nanoseconds done = host_.now();
    next_tasks_ = done + std::max(kTasksEvery, kRestPerPut * (done - begun));
  }
}

void ProgramRecording::warn_of_missing(const SourceNumbers& numbers, Outcome& outcome) const {
  if (numbers.stateless.unknown > 0) {
    outcome.warnings.push_back(fmt::format(
        "{} thread{} of process {} {} missing: which of its threads runs {} could not be found out",
        numbers.stateless.unknown, numbers.stateless.unknown == 1 ? "" : "s", pid(),
        numbers.stateless.unknown == 1 ? "is" : "are",
        numbers.stateless.unknown == 1 ? "a thread state of Python" : "thread states of Python"));
  }
  if (const size_t missing = numbers.stateless.waiting; missing > 0) {
    outcome.not_read.push_back(fmt::format(
        "{} thread{} of process {} {} not in the recording: of so many, some are added at a time, those that "
        "run Python first, and it ended before",
        missing, missing == 1 ? "" : "s", pid(), missing == 1 ? "is" : "are"));
    outcome.warnings.push_back(outcome.not_read.back());
  }
  if (const size_t missing = program_->threads_not_read; missing > 0) {
    outcome.not_read.push_back(fmt::format(
        "{} thread{} {} not read when the recording of process {} began: {} in the recording only "
        "if {} since",
        missing, missing == 1 ? "" : "s", missing == 1 ? "was" : "were", pid(),
        missing == 1 ? "it is" : "they are", missing == 1 ? "it ran" : "they ran"));
    outcome.warnings.push_back(outcome.not_read.back());
  }
}

void ProgramRecording::put_native_files(Nanoseconds now) {
  if (!native_ || options_.native_files == nullptr) return;
  const bool with_jit = now >= next_jit_files_ && native_->has_fresh_code();
  if (with_jit) next_jit_files_ = now + kJitFilesEvery;
  put_modules(with_jit);
}

void ProgramRecording::put_modules(bool with_jit) {
  for (NativeModule& module : native_->fresh_modules(with_jit))
    options_.native_files->add(id_, std::move(module));
}

void ProgramRecording::finish(End end, Outcome& outcome) {
  if (end == End::recording_ended) {
    kernel_threads_ = std::max(kernel_threads_, host_.kernel_workers(pid()));
    name_threads();
    name_process();
  }
  if (end == End::gone) source_->await_end();
  source_->stop();
  drain(host_.now() + kLastDrain);
  consumer_.discard(ring_);
  consumer_.settle_all();
  end_ = host_.now();
  if (const auto ended = source_->end(); ended && end != End::recording_ended)
    end_ = std::min(end_, ended->time);
  if (census_ && end != End::recording_ended) census_->end(end_);
  if (end == End::gone && !consumer_.has_begun() && (program_->birth || program_->started)) {
    if (const auto used = used_at_end()) consumer_.put_unseen(begin_, end_, *used);
  }
  host_.forget_end(pidfd_);
  identities_.flush();
  const auto& numbers = latest();
  if (options_.native_files != nullptr) {
    if (native_) put_modules(true);
    options_.native_files->note_end(id_);
  } else if (native_) {
    for (NativeModule& module : native_->take_modules()) outcome.modules.push_back(std::move(module));
  }
  if (native_) {
    for (std::string& line : details_of(numbers)) outcome.details.push_back(std::move(line));
  }
  put_counters();
  if (numbers.counts.reads == 0) why_no_python_ = sampler::why_no_python(numbers, end == End::gone);
  warn_of_missing(numbers, outcome);
  put_process(end_,
              end == End::gone   ? host_.how_ended(pidfd_)
              : end == End::exec ? "exec"
                                 : "recording ended",
              describe_mode(numbers));
  if (end == End::recording_ended) return;
  profile::Event event;
  event.kind = end == End::exec ? profile::EventKind::exec : profile::EventKind::process_end;
  event.time = end_;
  event.process = id_;
  event.text = end == End::exec ? host_.image_of(pid()).executable : row_.how_ended;
  sink_.emit(event);
}

void put_process_counters(profile::Sink& sink, profile::ProcessId process, const Progress& now,
                          const Progress* reported) {
  const auto put = [&](std::string_view name, auto value, auto before) {
    if (reported == nullptr || value != before)
      sink.emit({process, std::string(name), static_cast<int64_t>(value)});
  };
  const Progress before = reported != nullptr ? *reported : Progress();
  for (const Counted& c : kCounted) put(c.name, now.*c.total, before.*c.total);
  put(counters::kTicksMissed, now.ticks_missed, before.ticks_missed);
  put(counters::kTargetTime, now.target_time, before.target_time);
  if (now.kernel_threads > 0) put(counters::kKernelThreads, now.kernel_threads, before.kernel_threads);
  if (now.native.samples == 0) return;
  put(counters::kNative, now.native.samples, before.native.samples);
  put(counters::kNativeWhole, now.native.whole, before.native.whole);
  put(counters::kNativeRestarted, now.native.restarted, before.native.restarted);
  put(counters::kNativeCut, now.native.cut, before.native.cut);
  put(counters::kNativeUnmerged, now.native.unmerged, before.native.unmerged);
  put(counters::kNativeWithoutEvent, now.native_without_event, before.native_without_event);
}

void add_to(Progress& total, const Progress& one) {
  for (const Counted& c : kCounted) total.*c.total += one.*c.total;
  total.ticks_missed += one.ticks_missed;
  total.target_time += one.target_time;
  total.rests += one.rests;
  total.sampled_time += one.sampled_time;
  total.native += one.native;
  total.kernel_threads += one.kernel_threads;
  total.native_without_event = std::max(total.native_without_event, one.native_without_event);
  if (total.mode.empty()) total.mode = one.mode;
}

}  // namespace phlox::sampler
