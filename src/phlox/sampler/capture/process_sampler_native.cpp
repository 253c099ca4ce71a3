// ProcessSampler's samples with native frames: both stacks are of the same moment.
#include <algorithm>
#include <cstring>

#include "phlox/sampler/capture/found_state.h"
#include "phlox/sampler/capture/native_half.h"
#include "phlox/sampler/capture/native_threads.h"
#include "phlox/sampler/capture/process_sampler.h"

namespace phlox::sampler {
namespace {

using profile::CpuState;
using profile::GilState;
using profile::Quality;

}  // namespace

// The thread's event has most of what a sample otherwise asks the kernel for.
void ProcessSampler::ask_event(PythonThread& slot, Nanoseconds now) {
  slot.event = native_->event_state(slot.probe->tid(), now - slot.last_time);
  if (slot.event.kind == EventState::Kind::awake) {
    slot.done = true;
  } else if (slot.has_stack && slot.was_blocked && slot.event.asleep_since(slot.blocked_since)) {
    did_not_run(slot, slot.seen, now);
  }
}

// The range of a thread's C stack to copy, if its end is known. pthread_self() points to the top of a
// thread's stack (glibc, musl), except for the main thread.
ByteRange ProcessSampler::stack_of(PythonThread& slot, RemoteAddress sp) {
  if (slot.c_stack_end == 0 && slot.python_id - sp.value <= NativeCopy::kMostStack)
    slot.c_stack_end = slot.python_id;
  return NativeCopy::stack_range(sp, slot.c_stack_end);
}

bool ProcessSampler::read_with_native(PythonThread& slot, Nanoseconds now, bool holds, Seen& seen) {
  Domain& domain = threads_.domains()[slot.domain];
  NativeHalf& native = *native_;
  const pid_t tid = slot.probe->tid();
  native.begin_sample();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) ++counts_.retried;
    // A count read before the turn's first copy of the memory is valid for it (see read_other).
    const bool copied_before = attempt == 0 && (!holds || by_event()) && slot.first_valid;
    const auto before = copied_before ? std::optional(slot.first) : slot.probe->schedstat();
    if (!before) {
      threads_.has_ended(slot);
      return true;
    }
    unwind::Registers registers;
    BlockedCapture& blocked = native.for_blocked();
    NativeCapture* source = &blocked;
    auto held = NativeCapture::Held::running;
    if (attempt > 0 || slot.event.kind != EventState::Kind::preempted)
      held = blocked.hold(tid, *slot.probe, registers);
    if (held == NativeCapture::Held::running) {
      source = native.hold_running(tid, *slot.probe, now - slot.last_time, registers, held);
      if (held == NativeCapture::Held::later) {
        // Not caught this time. The GIL's holder shows whether this thread has the GIL at all.
        if (holds && domain.gil.holder_now(memory_) != slot.tstate) return false;
        slot.done = true;
        return true;
      }
      if (held == NativeCapture::Held::refused) {
        // Nothing holds it: read its Python frames alone.
        native.begin_sample();
        return read_running(slot, now, holds, seen);
      }
    }
    if (held == NativeCapture::Held::gone) {
      threads_.has_ended(slot);
      return true;
    }
    if (held != NativeCapture::Held::yes) continue;
    const bool sleeps = source == &blocked;
    if (sleeps && (blocked.last().number < 0 || config_.interval == 0)) {
      if (NativeCapture* stopped = native.hold_stopped(tid, *slot.probe, registers)) source = stopped;
    }

    native.begin_sample();
    const ByteRange stack = stack_of(slot, registers.sp);
    // A thread caught by an event has not run since before the turn; the schedule counts around it prove that
    // too.
    if (!copied_before || native.name_of(source) == NativeSource::ptrace || !snapshot_.is_for(slot.index) ||
        snapshot_.sample_number() == last_turns_sample_)
      snapshot_.capture_for(slot.index, stack);
    if (holds && domain.gil.holder(snapshot_) != slot.tstate) {
      source->let_go();
      return false;
    }
    const bool copied =
        native.copy().take(memory_, registers, native.name_of(source), source->kernel_frames(),
                           slot.c_stack_end, snapshot_.peek(stack.address, stack.size));
    const StackReader::Reading reading = read_stack(slot);
    // An event caught it on the CPU to which we were pinned.
    if (!sleeps)
      slot.last_cpu = workers_.current().cpu >= 0 && native.name_of(source) == NativeSource::perf
                          ? workers_.current().cpu
                          : cpu_of(slot);
    const auto after = copied_before && native.event_state(tid, 0).stands_since(slot.event)
                           ? before
                           : slot.probe->schedstat();
    source->let_go();
    if (!slot.alive) return true;
    if (!after) {
      threads_.has_ended(slot);
      return true;
    }
    if (source->needs_proof() && !unmoved(*before, *after)) continue;
    if (!reading.whole) {
      reject(slot, now, reading.rejected);
      return true;
    }
    if (copied) native.taken();
    seen.state.quality = reading.quality;
    seen.state.cpu_number = static_cast<int16_t>(slot.last_cpu);
    if (after->off()) schedstat_off_ = true;
    const bool unproved = !native.proves(source) || (after->off() && source->needs_proof());
    if (unproved && seen.state.quality == Quality::ok) seen.state.quality = Quality::unproved;
    const process::BlockedIn* in = nullptr;
    if (sleeps) {
      in = &blocked.last();
      is_in(slot, *in, *before, seen);
    } else {
      seen.state.cpu_state = held_state(*after, slot.seen);
    }
    seen.python.gil_state = layout_.traits.free_threaded ? GilState::not_applicable
                            : holds                      ? GilState::holds
                                                         : domain.gil.state_of(in);
    seen.python.collecting = holds && domain.gil.collecting(snapshot_);
    accept(slot, *after, now, seen, reading);
    native.begin_sample();
    return true;
  }
  native.begin_sample();
  reject(slot, now, Rejected::moved);
  return true;
}

void ProcessSampler::sample_native_threads(Nanoseconds now) {
  const NativeThreads::Numbers before = native_threads_->numbers();
  native_threads_->turn(tick_, now, now + config_.longest_turn,
                        [this](pid_t tid) { return threads_.has(tid); });
  const NativeThreads::Numbers& numbers = native_threads_->numbers();
  counts_.samples += numbers.samples - before.samples;
  counts_.retried += numbers.retried - before.retried;
  counts_.moved += numbers.rejected - before.rejected;
  // Events wake us only on the CPU to which we are pinned: next, move to the thread that has waited longest.
  if (const pid_t tid = native_->take_longest_waiting(); tid != 0) {
    const auto slot = std::find_if(threads_.all().begin(), threads_.all().end(),
                                   [tid](const auto& s) { return s->probe->tid() == tid; });
    int cpu = native_->cpu_of(tid);
    if (cpu < 0 && slot != threads_.all().end()) cpu = cpu_of(**slot);
    if (cpu < 0) cpu = process::ThreadProbe(config_.pid, tid).cpu();
    workers_.send_one_to(cpu);
  }
}

Woken ProcessSampler::wait_for_event(Worker& worker, Nanoseconds interval, TurnLock& turn_lock) {
  if (!native_) return Woken::nothing_to_wait_for;
  return native_->wait(worker, interval, turn_lock);
}

std::optional<NativeSource> ProcessSampler::native_source() const {
  if (!native_) return {};
  const bool stops_nobody =
      native_->in_use() == NativeSource::ptrace && stops_.stops == 0 && stops_.stop_refused > 0;
  return stops_nobody ? NativeSource::syscall : native_->in_use();
}

EventNumbers ProcessSampler::native_events() const {
  return native_ ? native_->events() : EventNumbers();
}

size_t ProcessSampler::native_threads() const {
  return native_threads_ ? native_threads_->size() : 0;
}

size_t ProcessSampler::kernel_workers() const {
  return native_threads_ ? native_threads_->kernel_workers() : 0;
}

}  // namespace phlox::sampler
