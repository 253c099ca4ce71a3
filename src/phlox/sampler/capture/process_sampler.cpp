#include "phlox/sampler/capture/process_sampler.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "phlox/process/ended_thread.h"
#include "phlox/sampler/capture/found_state.h"
#include "phlox/sampler/capture/native_half.h"
#include "phlox/sampler/capture/native_threads.h"

namespace phlox::sampler {
namespace {

using profile::CpuState;
using profile::GilState;
using profile::Quality;

// The maximum number of threads whose CPU is read together with the GIL's holder.
constexpr size_t kScouted = 32;

}  // namespace

ProcessSampler::ProcessSampler(const Config& config, const python::Interpreter& interpreter,
                               memory::RemoteMemory& memory, Ring& ring, Workers& workers)
    : config_(config),
      interpreter_(interpreter),
      layout_(interpreter_.layout),
      memory_(memory),
      workers_(workers),
      log_(ring),
      snapshot_(memory),
      native_(config_.native ? std::make_unique<NativeHalf>(config_.pid, *config_.native, config_.interval,
                                                            config_.real_time, stops_, workers_)
                             : nullptr),
      reader_(interpreter_, memory, ring, snapshot_, native_ ? &native_->copy() : nullptr),
      traces_(config_.traces),
      threads_(
          {config_.pid, config_.rseq_cpu_offset, config_.native.has_value(), config_.once, config_.birth},
          interpreter_, memory, snapshot_, log_) {
  if (native_) native_threads_ = std::make_unique<NativeThreads>(config_.pid, memory_, log_, *native_);
  if (config_.longest_stack && !config_.once) reader_.limit(*config_.longest_stack);
}

ProcessSampler::~ProcessSampler() = default;

// ---- the GIL's holder and its CPU

// Reads the GIL's holder and the CPU of each thread in one small read: a wrong guess costs a whole copy and a
// move. False: they cannot be found this way.
bool ProcessSampler::scout(Domain& domain) {
  if (layout_.traits.free_threaded) return false;
  Gil::Words words;
  std::array<int32_t, kScouted> cpus;
  std::array<PythonThread*, kScouted> slots;
  std::array<memory::Range, Gil::Words::kRanges + kScouted> ranges;
  const size_t gil_words = domain.gil.ranges(words, ranges);
  if (gil_words == 0) return false;
  size_t asked = 0;
  for (const auto& slot : threads_.all()) {
    if (asked == kScouted) break;
    if (!slot->alive || !slot->rseq_cpu || slot->interpreter != domain.interpreter) continue;
    if (!moved_.empty() && slot->first_valid && slot->has_slept_on(slot->first)) continue;
    slots[asked] = slot.get();
    ranges[gil_words + asked] = {slot->rseq_cpu, std::as_writable_bytes(std::span(&cpus[asked], 1))};
    ++asked;
  }
  const size_t got = memory_.read(std::span(ranges).first(gil_words + asked));
  if (got < gil_words) return false;
  for (size_t i = 0; i < got - gil_words; ++i) {
    if (cpus[i] < 0) continue;
    slots[i]->last_cpu = cpus[i];
    slots[i]->cpu_known_at = tick_;
  }
  const RemoteAddress holder = words.holder();
  domain.runner = holder ? threads_.find(holder) : nullptr;
  return true;
}

int ProcessSampler::cpu_of(PythonThread& slot) {
  if (slot.rseq_cpu) {
    int32_t cpu = -1;
    if (memory_.read_value(slot.rseq_cpu, cpu) && cpu >= 0) return cpu;
  }
  return slot.probe->cpu();
}

// ---- one stack

// Applies what the reading says about the thread itself.
StackReader::Reading ProcessSampler::read_stack(PythonThread& slot) {
  ++counts_.reads;
  const StackReader::Reading reading = reader_.read(slot.index, slot);
  const ReadAs as(snapshot_, slot.index);
  trace_ = reading.whole ? traces_.read(snapshot_, slot.python_id) : std::nullopt;
  if (reading.state_gone) threads_.lose_state(slot);
  if (reading.runs_elsewhere) slot.alive = false;
  if (reading.state_gone || reading.runs_elsewhere) threads_.want_refresh();
  if (reading.frames.data() != nullptr && config_.on_stack) config_.on_stack(slot.index, reading.frames);
  return reading;
}

bool ProcessSampler::still_unmoved(PythonThread& slot, const process::SchedStat& since) {
  const auto now = slot.probe->schedstat();
  return now && unmoved(since, *now);
}

bool ProcessSampler::by_event() const {
  return native_ && native_->in_use() == NativeSource::perf;
}

// A dump samples no thread twice.
bool ProcessSampler::is_over(const PythonThread& slot) const {
  return config_.once && (slot.has_stack || slot.empty_samples >= kEmptySamples);
}

ProcessSampler::Unseen ProcessSampler::unseen() const {
  const auto waits = [this](const auto& slot) { return slot->in_python() && !is_over(*slot); };
  Unseen unseen;
  unseen.threads = static_cast<size_t>(std::count_if(threads_.all().begin(), threads_.all().end(), waits));
  if (native_threads_) unseen.threads += native_threads_->unseen();
  unseen.list_whole = threads_.is_whole();
  return unseen;
}

bool ProcessSampler::seen_lately(const PythonThread& slot, Nanoseconds now) const {
  if (is_over(slot)) return true;
  return native_ && slot.has_stack && now - slot.last_time < native_->soonest_again();
}

ProcessSampler::Holder ProcessSampler::read_holder(Domain& domain, Nanoseconds now) {
  if (layout_.traits.free_threaded) {
    // No thread holds a GIL. The thread that was last found running comes first: the copy made with its stack
    // serves the others, and it need not be checked for sleeping.
    PythonThread* slot = domain.runner;
    if (slot != nullptr && slot->alive && !slot->was_blocked && !native_ && !is_over(*slot) &&
        goes_to_its_cpu(config_.mode)) {
      read_awake(*slot, now, false);
      return Holder::known;
    }
    domain.runner = nullptr;
    if (!by_event()) capture_for(Snapshot::kEverybody);  // otherwise the turn has made the copy
    return Holder::known;
  }
  // The holder may change until a thread is found holding the GIL without running.
  for (int change = 0; change < kAttempts; ++change) {
    // If an event woke us, the thread that it caught does not run: the turn's copy serves it and the others.
    const bool caught = by_event() && change == 0;
    const bool scouted = !caught && goes_to_its_cpu(config_.mode) && domain.threads > 1 && scout(domain);
    PythonThread* slot = caught ? nullptr : domain.runner;
    if (slot == nullptr || !slot->alive || (change > 0 && !scouted)) {
      if (!caught) capture_for(Snapshot::kEverybody);
      const RemoteAddress tstate = domain.gil.holder(snapshot_);
      if (!tstate) return Holder::known;
      slot = threads_.find(tstate);
      if (slot == nullptr) {
        threads_.want_refresh();
        domain.runner = nullptr;
        return threads_.was_declined(tstate) ? Holder::known : Holder::fresh;
      }
      domain.runner = slot;
    }
    // The copy serves the other threads.
    if (seen_lately(*slot, now) || slot->event.kind == EventState::Kind::awake ||
        (slot->done && slot->event.kind == EventState::Kind::asleep))
      return Holder::known;
    if (read_awake(*slot, now, true)) {
      slot->done = true;
      return Holder::known;
    }
  }
  return Holder::known;
}

// For a thread that is not blocked and may run meanwhile.
void ProcessSampler::judge_free(PythonThread& slot, const process::SchedStat& stat, Nanoseconds now,
                                SampleState& state) {
  const process::SchedStat since = stat - slot.seen;
  std::optional<bool> waited;
  // If it is on our CPU, we may have taken that from it.
  if (!hardly_waited(since, now - slot.last_time))
    waited = slot.probe->cpu() == ::sched_getcpu() ? workers_.current().found_it_waiting(*slot.probe)
                                                   : slot.probe->off_cpu_since(stat);
  set_awake(state, waited, awake_state(since, false));
}

void ProcessSampler::is_in(PythonThread& slot, const process::BlockedIn& call,
                           const process::SchedStat& since, Seen& seen) {
  seen.state.cpu_state = CpuState::blocked;
  seen.state.system_call = static_cast<int16_t>(call.number);
  seen.state.waits_for = process::waits_for(call, memory_);
  if (process::stands_in_memory(call) && !still_unmoved(slot, since)) seen.state.waits_for = {};
}

// While the GIL's holder does not run, no other thread's Python frames can change: what was copied with its
// stack is proved with it, wherever the others run. False: the holder has run.
bool ProcessSampler::read_with_holder(PythonThread& slot, Domain& domain, Nanoseconds now) {
  const auto in = slot.probe->blocked_in();
  if (in && process::has_ended(*in)) {
    threads_.has_ended(slot);
    return true;
  }
  const uint64_t codes = reader_.codes().resolved();
  const StackReader::Reading reading = read_stack(slot);
  if (!slot.in_python()) return true;
  if (snapshot_.follow_ups() != domain.frozen_reads || reader_.codes().resolved() != codes) {
    if (!domain.frozen->alive || !still_unmoved(*domain.frozen, domain.frozen_stat)) return false;
    domain.frozen_reads = snapshot_.follow_ups();
  }
  if (!reading.whole) {
    reject(slot, now, reading.rejected);
    return true;
  }
  Seen seen;
  seen.state.quality = reading.quality;
  if (in && !in->running) {
    is_in(slot, *in, slot.first, seen);
    // The GIL's holder proves the frames of others, and nothing that they change without the GIL.
    if (trace_ && !still_unmoved(slot, slot.first)) trace_.reset();
  } else {
    judge_free(slot, slot.first, now, seen.state);
    trace_.reset();
    if (slot.cpu_known_at == tick_) seen.state.cpu_number = static_cast<int16_t>(slot.last_cpu);
  }
  seen.python.gil_state = domain.gil.state_of(in ? &*in : nullptr);
  accept(slot, slot.first, now, seen, reading);
  return true;
}

// ---- sending samples

void ProcessSampler::accept(PythonThread& slot, const process::SchedStat& stat, Nanoseconds now,
                            const Seen& seen, const StackReader::Reading& reading) {
  ThreadSample sample = sample_at(slot.index, now, slot.last_time);
  // CPU time used since the last sample is carried to a sample that finds the thread running.
  if (slot.nested == nullptr || slot.nested->stack.empty())
    slot.cpu_carried += static_cast<Nanoseconds>((stat - slot.seen).run_ns);
  sample.state = seen.state;
  if (trace_ && seen.state.quality != Quality::unproved) sample.state.trace = trace_numbers_.of(*trace_);
  sample.python = seen.python;
  sample.time.wait_since = now;
  NativeParts native;
  if (native_) {
    sample.native.part = native_->part();
    sample.time.ran = native_->ran_between(slot.seen, stat);
    native = native_->parts_for(sample.native.part);
  } else if (!stat.off()) {
    const process::SchedStat since = stat - slot.seen;
    sample.time.ran = static_cast<Nanoseconds>(since.run_ns + since.wait_ns);
    sample.time.queued = static_cast<Nanoseconds>(since.wait_ns);
  }
  if (seen.state.quality != Quality::unproved) reader_.codes().keep_proved();
  if (sample.time.queued >= 0 && sample.state.cpu_state == CpuState::runnable &&
      may_have_been_woken(sample.time.wall, stat - slot.seen))
    sample.state.ran_elsewhere = true;
  slot.saw(log_, sample, stat, tick_, &reader_.locations(), native);
  slot.done = true;
  ++counts_.samples;
  if (reading.quality == Quality::detached) ++counts_.detached;
  if (reading.quality == Quality::cut) ++counts_.cut;
  if (seen.state.quality == Quality::unproved) ++counts_.unproved;
}

void ProcessSampler::did_not_run(PythonThread& slot, const process::SchedStat& stat, Nanoseconds now) {
  counts_.samples += slot.did_not_run(log_, stat, tick_, now);
  slot.done = true;
  pause_idle(slot);
}

void ProcessSampler::reject(PythonThread& slot, Nanoseconds now, Rejected why) {
  if (why == Rejected::unreadable) {
    // A zombie has no memory any more: nothing was missed.
    const auto stat = slot.probe->stat();
    if (!stat || stat->has_ended()) {
      slot.done = true;
      slot.alive = false;
      return;
    }
  }
  slot.reject(log_, GilState::unknown, now, why);
  slot.done = true;
  ++counts_.samples;
  switch (why) {
    case Rejected::moved:
      ++counts_.moved;
      reader_.was_moved();
      break;
    case Rejected::unreadable:
      ++counts_.unreadable;
      break;
    case Rejected::broken:
      ++counts_.broken;
      break;
    case Rejected::no:
      break;
  }
}

Counts ProcessSampler::counts() const {
  Counts counts = counts_;
  counts.stops = stops_.stops;
  counts.stop_refused = stops_.stop_refused;
  counts.stood = stops_.stood;
  counts.lost = log_.lost();
  counts.migrations = workers_.migrations();
  counts.not_read = reader_.codes().not_read();
  return counts;
}

void ProcessSampler::flush() {
  if (native_threads_) native_threads_->flush();
  for (auto& slot : threads_.all()) log_.flush(*slot);
}

void ProcessSampler::finish(Nanoseconds now) {
  if (native_threads_) native_threads_->finish(now);
  threads_.end_all(now);
}

}  // namespace phlox::sampler
