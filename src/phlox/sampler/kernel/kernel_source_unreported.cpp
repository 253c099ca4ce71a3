// Time that no record reports: a wait that still grows, and what a thread did between its last record and its
// end or that of the recording. The kernel's map has it.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "phlox/sampler/kernel/kernel_source.h"

namespace phlox::sampler {
namespace {

using profile::CpuState;
using profile::GilState;

const std::vector<CodeLocation> kNotSeenRunning = {{kNotSeen, 0}};
// A thread that waits often is reported this often, even if only long waits are reported.
constexpr Nanoseconds kRecent = kSecond / 10;

bool is_away(const kernel_thread& known) {
  return (known.state == KERNEL_BLOCKED || known.state == KERNEL_QUEUED) && known.off.since != 0;
}

process::WaitsFor waits_for(const kernel_thread& known) {
  using Kind = process::WaitsFor::Kind;
  switch (known.off.waits_for_what) {
    case KERNEL_WAITS_FOR_FILE:
      return {Kind::descriptor, known.off.waits_for, known.off.waits_for_others};
    case KERNEL_WAITS_FOR_CHILD:
      return {Kind::child, known.off.waits_for, 0};
    case KERNEL_WAITS_FOR_TIME:
      return {.kind = Kind::time};
    default:
      return {};
  }
}

// As if it had been sampled now.
KernelSample sample_now(pid_t tid, Nanoseconds now, const kernel_thread& known) {
  KernelSample record;
  kernel_sample& sample = record.sample;
  const auto since =
      static_cast<uint64_t>(std::max<Nanoseconds>(now - static_cast<Nanoseconds>(known.since), 0));
  sample.head.type = KERNEL_SAMPLE;
  sample.thread = static_cast<uint32_t>(tid);
  sample.cpu = -1;
  sample.system_call = -1;
  sample.time = static_cast<uint64_t>(now);
  sample.ran = known.sums.ran + (known.state == KERNEL_RUNNING ? since : 0);
  sample.blocked = known.sums.blocked + (known.state == KERNEL_BLOCKED ? since : 0);
  sample.queued = known.sums.queued + (known.state == KERNEL_QUEUED ? since : 0);
  if (!is_away(known)) return record;
  sample.system_call = known.off.system_call;
  record.waits_for = waits_for(known);
  sample.off_since = known.off.since;
  sample.native = known.off.native;
  sample.stack = known.off.stack;
  sample.stack.flags &= static_cast<uint16_t>(~KERNEL_FRAMES);
  if (known.off.walked == 0) {
    sample.stack.count = sample.stack.trace = 0;
    sample.stack.flags = KERNEL_NOT_WALKED;
    const bool wants_gil = known.off.futex - known.gil.at < known.gil.size;
    if (known.off.futex != 0 && known.gil.at == 0) sample.stack.flags |= KERNEL_GIL_UNKNOWN;
    if (known.off.futex != 0 && known.gil.at != 0 && wants_gil) sample.stack.flags |= KERNEL_WAITS_GIL;
  }
  return record;
}

}  // namespace

void KernelSource::still(pid_t tid, Thread& thread, Nanoseconds now, Nanoseconds heard_until,
                         const std::optional<kernel_thread>& known) {
  if (!known) {
    // Parked before the kernel was asked, and not on a CPU since.
    if (thread.asleep && !thread.counted)
      put(thread, Piece::sample, *thread.asleep, now - thread.last_time, thread.asleep_stack);
    return;
  }
  const auto since = static_cast<Nanoseconds>(known->since);
  if (is_away(*known) && since < heard_until && now >= since) take(sample_now(tid, now, *known));
}

// A wait for which the kernel had no time when it began. A blocked thread can be read from outside, at no
// cost to it.
bool KernelSource::is_unread(Thread& thread, Nanoseconds now,
                             const std::optional<kernel_thread>& known) const {
  constexpr int kMostTries = 3;
  if (!known || !thread.runs_python || known->state != KERNEL_BLOCKED || known->off.since == 0 ||
      known->off.walked != 0 || parked_codes_.size() >= kMostParkedCodes)
    return false;
  if (now - static_cast<Nanoseconds>(known->off.since) < kReadAfter) return false;
  if (thread.outside.since != known->off.since) {
    thread.outside = {};
    thread.outside.since = known->off.since;
  }
  return thread.outside.stack.empty() && ++thread.outside.tries <= kMostTries;
}

void KernelSource::close(pid_t tid, Thread& thread, Nanoseconds now,
                         const std::optional<kernel_thread>& known) {
  if (now <= thread.last_time) return;
  if (!known) {
    still(tid, thread, now, now, known);
  } else if (const KernelSample record = sample_now(tid, now, *known); record.sample.off_since != 0) {
    take(record);
  } else {
    put_last(thread, record.sample);
  }
}

// Waits without a record go to the wait of the last record. If that is long ago, and the clock has found the
// thread running since, they are part of that run, in an unknown call. For a thread that was not met before,
// they may be long, and anywhere. Their targets are not known.
void KernelSource::put_short_waits(Thread& thread, Nanoseconds time, ThreadSample run,
                                   const std::vector<CodeLocation>& stack, const NativeParts& native) {
  const bool is_recent = thread.asleep && thread.last_time + time - thread.slept_until < kRecent;
  const bool is_run =
      thread.awake && !is_recent && (!thread.asleep || thread.slept_until <= thread.awake->time.end);
  ThreadSample wait = is_run || !thread.asleep ? run : *thread.asleep;
  wait.state.cpu_state = CpuState::blocked;
  wait.state.waker = wait.state.wait_target = wait.state.code_file = wait.state.trace = 0;
  wait.state.waits_for = {};
  wait.time.wait_since = 0;
  if (is_run || !thread.asleep) {
    wait.state.system_call = profile::kCallNotRecorded;
    if (wait.python.gil_state != GilState::not_applicable) wait.python.gil_state = GilState::unknown;
  }
  if (is_run) {
    if (wait.native.part == NativePart::fresh) wait.native.place = NativePlace::queued;
    put(thread, Piece::part, wait, time, stack, native);
  } else if (thread.asleep) {
    put(thread, Piece::part, wait, time, thread.asleep_stack);
  } else {
    wait.native.part = NativePart::none;
    wait.state.quality = profile::Quality::ok;  // a stack that is not known is not cut
    put(thread, Piece::part, wait, time, KernelStacks::kWaitNotWalked);
  }
}

// It was on its CPU without a sample: the time goes to the stack with which it was last seen running. If it
// was only ever seen in waits, the place of its run is not known.
void KernelSource::put_last(Thread& thread, const kernel_sample& sample) {
  const Spent spent = this->spent(thread, sample);
  const auto& last = thread.awake ? thread.awake : thread.asleep;
  if (!last) return;
  const Nanoseconds carried = std::exchange(thread.cpu_carried, 0) + spent.ran;
  Nanoseconds own = spent.window;
  const auto put_some = [&](const ThreadSample& like, CpuState state, Nanoseconds time,
                            const std::vector<CodeLocation>& stack) {
    time = std::min(time, own);
    own -= time;
    ThreadSample piece = like;
    piece.state.cpu_state = state;
    if (state != CpuState::blocked) piece.state.system_call = -1;
    if (state != CpuState::running) piece.state.code_file = 0;
    if (state == CpuState::running) thread.cpu_carried = carried;
    if (time > 0 || (state == CpuState::running && carried > 0)) put(thread, Piece::part, piece, time, stack);
  };
  const Nanoseconds slept = std::min(thread.owed_asleep + spent.blocked, own);
  if (slept > 0) {
    own -= slept;
    put_short_waits(thread, slept, *last, thread.awake ? thread.awake_stack : kNotSeenRunning, {});
  }
  ThreadSample run = *last;
  run.state.trace = 0;  // it may have worked for another span since
  if (!thread.awake && run.python.gil_state == GilState::waits) run.python.gil_state = GilState::none;
  if (!thread.awake) run.state.quality = profile::Quality::ok;
  const std::vector<CodeLocation>& stack = thread.awake ? thread.awake_stack : kNotSeenRunning;
  put_some(run, CpuState::runnable, spent.queued, stack);
  put_some(run, CpuState::running, own, stack);
}

void KernelSource::end(Thread& thread, Nanoseconds now) {
  log_.end(thread, std::max(now, thread.last_time));
}

void KernelSource::take(const kernel_signal& record) {
  SignalRecord out;
  out.time = static_cast<Nanoseconds>(record.time);
  out.signal = static_cast<int16_t>(record.signal);
  out.what = record.what == KERNEL_SIGNAL_SENT       ? SignalRecord::What::sent
             : record.what == KERNEL_SIGNAL_RECEIVED ? SignalRecord::What::received
                                                     : SignalRecord::What::delivered;
  if (const auto found = threads_.find(static_cast<pid_t>(record.thread)); found != threads_.end())
    out.thread = found->second->index;
  out.other = static_cast<pid_t>(record.other);
  out.by_kernel = (record.flags & KERNEL_SIGNAL_BY_KERNEL) != 0;
  out.own_fault = (record.flags & KERNEL_SIGNAL_OWN) != 0;
  out.ends = (record.flags & KERNEL_SIGNAL_ENDS) != 0;
  out.handled = (record.flags & KERNEL_SIGNAL_HANDLED) != 0;
  out.no_memory = (record.flags & KERNEL_SIGNAL_NO_MEMORY) != 0;
  out.unseen = (record.flags & KERNEL_SIGNAL_UNSEEN) != 0;
  const std::string_view name(record.name, ::strnlen(record.name, sizeof record.name));
  name.copy(out.name, sizeof out.name - 1);
  log_.write(out, "");
}

// After execve all threads are gone; the run of this one until then is reported.
void KernelSource::take(const kernel_exit& record) {
  const auto now = static_cast<Nanoseconds>(record.time);
  const bool execs = record.head.type == KERNEL_EXEC;
  if (record.first != 0 || execs) end_ = SampleSource::End{now, static_cast<Nanoseconds>(record.ran)};
  if (end_) end_->time = std::max(end_->time, now);
  const auto found = threads_.find(static_cast<pid_t>(record.thread));
  if (found != threads_.end()) {
    kernel_sample sample{};
    sample.time = record.time;
    sample.ran = record.ran;
    sample.blocked = record.blocked;
    sample.queued = record.queued;
    if (now > found->second->last_time) put_last(*found->second, sample);
    end(*found->second, now);
    halves_.forget(found->first);
    traces_.erase(found->first);
    if (ended_.size() >= kMostEnded) ended_.clear();
    ended_[found->first] = {found->second->index, now};
    threads_.erase(found);
  }
  if (!execs) return;
  for (auto& [tid, thread] : threads_) {
    end(*thread, now);
    halves_.forget(tid);
  }
  threads_.clear();
}

}  // namespace phlox::sampler
