// Divides the time before a sample (time_split.h) into rows.
#include <optional>

#include "phlox/sampler/assemble/consumer.h"

namespace phlox::sampler {
namespace {

// The place where a thread was found running says nothing about a run this much later.
constexpr Nanoseconds kLongestMemory = kSecond;

}  // namespace

void Consumer::put_row(const TracedSample& sample) {
  identities_.spans.add(sample);
  const auto trace = traces_.find(sample.trace);
  if (trace != traces_.end())
    identities_.traces.add({sample.thread, trace->second, sample.start, sample.start + sample.wall});
}

void Consumer::emit_sample(ThreadState& thread, const TracedSample& sample) {
  if (thread.held.empty()) {
    put_row(sample);
  } else {
    thread.held.push_back(sample);
  }
}

// `queued`: its unreported wait for a CPU before the last sample.
void Consumer::settle(ThreadState& thread, Nanoseconds queued) {
  if (thread.held.empty()) return;
  TracedSample& open = thread.held.front();
  queued = std::min(queued, open.wall);
  TracedSample waited = open;
  open.wall -= queued;
  if (open.wall > 0) put_row(open);
  waited.start += open.wall;
  waited.wall = queued;
  waited.cpu_state = profile::CpuState::runnable;
  if (queued > 0) put_row(waited);
  for (size_t i = 1; i < thread.held.size(); ++i) put_row(thread.held[i]);
  thread.held.clear();
}

void Consumer::settle_all() {
  for (auto& [number, thread] : threads_) settle(thread);
}

void Consumer::put_piece(ThreadState& thread, TracedSample piece, profile::CpuState state, Nanoseconds wall,
                         TracedSample& before) {
  if (wall <= 0) return;
  piece.start = before.start;
  piece.wall = wall;
  piece.cpu = 0;
  piece.samples = 0;
  // No sample saw this piece: the target and the waker of a wait in it are not known.
  piece.waker = {};
  piece.wait_target = {};
  // It may have worked for another span meanwhile.
  if (piece.trace != before.trace) piece.trace = 0;
  piece.cpu_state = state;
  if (state != profile::CpuState::blocked) piece.system_call = -1;
  before.start += wall;
  before.wall -= wall;
  // The kernel counts a wait for a CPU when the thread runs again, so the next sample has it.
  if (state == profile::CpuState::unknown && thread.held.empty()) {
    thread.held.push_back(piece);
  } else {
    emit_sample(thread, piece);
  }
}

// Divides the time before a sample by the kernel's account. The sample itself shows only how the thread was
// found.
void Consumer::put_states(const ThreadSample& record, ThreadState& thread, TracedSample& sample) {
  using profile::CpuState;
  const bool was_awake = thread.last && thread.last->cpu_state != CpuState::blocked;
  const StateSplit::Parts parts =
      thread.states.split(record.time.wall, record.time.ran - record.time.queued, record.time.queued,
                          record.state.cpu_state, was_awake, !record.state.ran_elsewhere);
  settle(thread, parts.late);
  if (record.time.wall > 0 && parts.queued == record.time.wall) {
    sample.cpu_state = CpuState::runnable;
    emit_sample(thread, sample);
    return;
  }
  if (parts.asleep > 0) {
    // A thread that was asleep at the last sample slept on there. Any other was off its CPU on the way here:
    // it slept, or was pre-empted, which the kernel counts when the thread runs again.
    const bool goes_on = thread.last && thread.last->cpu_state == CpuState::blocked;
    put_piece(thread, goes_on ? *thread.last : sample, goes_on ? CpuState::blocked : CpuState::unknown,
              parts.asleep, sample);
  }
  TracedSample awake = sample;
  if (record.state.cpu_state == CpuState::blocked && (parts.ran > 0 || parts.queued > 0)) {
    const bool fresh =
        thread.awake && sample.start - thread.awake->start - thread.awake->wall < kLongestMemory;
    if (fresh) awake = *thread.awake;
    if (!fresh) move_between_samples(awake);
  } else if (record.state.ran_elsewhere) {
    move_between_samples(awake);
  }
  put_piece(thread, awake, CpuState::running, parts.ran, sample);
  put_piece(thread, awake, CpuState::runnable, parts.queued, sample);
  if (record.state.cpu_state == CpuState::running) thread.awake = sample;
  emit_sample(thread, sample);
}

void Consumer::put_split(const ThreadSample& record, ThreadState& thread, TracedSample& sample) {
  if (record.time.queued >= 0 && record.state.rejected == Rejected::no && sample.stack) {
    put_states(record, thread, sample);
    return;
  }
  settle(thread);
  if (record.time.ran >= 0 && record.state.rejected == Rejected::no) {
    const bool asleep = record.state.cpu_state == profile::CpuState::blocked;
    const auto& other = asleep ? thread.awake : thread.asleep;
    const TimeSplit::Parts parts =
        thread.time.split(record.time.wall, record.time.ran, asleep, other.has_value());
    if (parts.other > 0) {
      TracedSample piece = *other;
      piece.start = sample.start;
      piece.wall = parts.other;
      // No sample saw this piece, as in put_piece().
      piece.waker = {};
      piece.wait_target = {};
      if (piece.trace != sample.trace) piece.trace = 0;
      put_row(piece);
      sample.start += parts.other;
      sample.wall = parts.own;
    }
    auto& kind = asleep ? thread.asleep : thread.awake;
    kind = sample;
    kind->cpu = 0;
    kind->samples = 0;
  }
  put_row(sample);
}

}  // namespace phlox::sampler
