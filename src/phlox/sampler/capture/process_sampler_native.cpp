// What ProcessSampler does for native frames only.
#include <algorithm>

#include "phlox/sampler/capture/native_half.h"
#include "phlox/sampler/capture/native_threads.h"
#include "phlox/sampler/capture/process_sampler.h"

namespace phlox::sampler {

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
