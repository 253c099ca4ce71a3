// Wakers, wait targets and traces: each is sent to the consumer once, and later records give its number.
#include <fmt/format.h>

#include <cstring>

#include "phlox/profile/waker_words.h"
#include "phlox/sampler/kernel/kernel_source.h"

namespace phlox::sampler {
namespace {

// After this many, numbering restarts.
constexpr size_t kMostWakers = 100'000, kMostWaitTargets = 100'000;
// Threads without a record of their end.
constexpr size_t kMostTraceThreads = 100'000;
// arch/x86/entry/syscalls/syscall_64.tbl
constexpr int16_t kWait4 = 61, kWaitid = 247;

const std::vector<CodeLocation> kNoFrames;

}  // namespace

// ---- wakers

// 0: not a thread of this process, or one that runs no Python. An ended thread counts if it existed during
// that wait.
uint32_t KernelSource::index_of_waker(const kernel_sample& sample) const {
  const auto tid = static_cast<pid_t>(sample.waker.thread);
  if (const auto found = threads_.find(tid); found != threads_.end()) return found->second->index;
  const auto ended = ended_.find(tid);
  const bool was_there =
      ended != ended_.end() && ended->second.time >= static_cast<Nanoseconds>(sample.off_since);
  return was_there ? ended->second.index : 0;
}

uint32_t KernelSource::waker_of(const kernel_sample& sample) {
  const kernel_waker& waker = sample.waker;
  const bool timed_out = waker.ended == KERNEL_ENDED_BY_TIMEOUT;
  if (!timed_out && (waker.ended != KERNEL_ENDED_BY_THREAD || waker.thread == 0)) return 0;
  const uint32_t thread = timed_out ? 0 : index_of_waker(sample);
  const auto* stack = stacks_.find(waker.stack);
  std::string other;
  if (timed_out) {
    other = profile::kItsTimeout;
  } else if (thread == 0 && static_cast<pid_t>(waker.process) == process_) {
    other = profile::kThreadWithoutPython;
  } else if (thread == 0) {
    const size_t length = ::strnlen(waker.name, sizeof waker.name);
    other = fmt::format("{} ({})", std::string_view(waker.name, length), waker.process);
  }
  const bool has_stack = thread != 0 && waker.stack != 0 && stack != nullptr;
  if (wakers_.size() >= kMostWakers) wakers_.clear();
  const auto [known, fresh] = wakers_.try_emplace({thread, has_stack ? waker.stack : 0, other},
                                                  static_cast<uint32_t>(wakers_.size()) + 1);
  if (!fresh) return known->second;
  WakerRecord record;
  record.waker = known->second;
  record.thread = thread;
  other.copy(record.other, sizeof record.other - 1);
  const std::vector<CodeLocation>& frames = has_stack ? *stack : kNoFrames;
  record.size = static_cast<uint32_t>(frames.size());
  if (log_.write(record, frames)) return record.waker;
  wakers_.erase(known);
  return 0;
}

// ---- wait targets

uint32_t KernelSource::number_of(WaitTargetRecord record, const std::string& name) {
  if (wait_targets_.size() >= kMostWaitTargets) wait_targets_.clear();
  const auto [known, fresh] = wait_targets_.try_emplace({record.what, record.others, record.file, name},
                                                        static_cast<uint32_t>(wait_targets_.size()) + 1);
  if (!fresh) return known->second;
  record.wait_target = known->second;
  record.size = static_cast<uint32_t>(name.size());
  if (log_.write(record, name)) return record.wait_target;
  wait_targets_.erase(known);
  return 0;
}

void KernelSource::take(const KernelWaitTarget& record) {
  const auto found = threads_.find(static_cast<pid_t>(record.wait_target.thread));
  if (found == threads_.end()) return;
  process::NamedFile file;
  WaitTargetRecord out;
  if ((record.wait_target.flags & KERNEL_WAIT_TARGET_NONE) != 0) {
    out.what = WaitTargetRecord::What::time;
  } else {
    file = file_of(record);
    out.file = file.file;
    out.others = record.wait_target.others;
  }
  found->second->wait_target = number_of(out, file.name);
  found->second->wait_target_since = record.wait_target.since;
}

// A child that ends wakes the thread that waits for it.
uint32_t KernelSource::wait_target_of(const Thread& thread, const kernel_sample& sample) {
  if (thread.wait_target_since == sample.off_since) return thread.wait_target;
  if ((sample.system_call != kWait4 && sample.system_call != kWaitid) || sample.waker.process == 0) return 0;
  WaitTargetRecord child;
  child.what = WaitTargetRecord::What::child;
  child.file.process = static_cast<pid_t>(sample.waker.process);
  child.since = static_cast<Nanoseconds>(sample.off_since);
  return number_of(child,
                   std::string(sample.waker.name, ::strnlen(sample.waker.name, sizeof sample.waker.name)));
}

// ---- traces

// It may come before the first sample of its thread.
void KernelSource::take(const kernel_trace& record) {
  const auto tid = static_cast<pid_t>(record.thread);
  if (traces_.size() >= kMostTraceThreads && !traces_.contains(tid)) return;
  Trace& trace = traces_[tid];
  trace.number = record.number;
  std::memcpy(trace.ids.trace.data(), record.ids.trace, sizeof record.ids.trace);
  std::memcpy(trace.ids.span.data(), &record.ids.span, sizeof record.ids.span);
}

uint32_t KernelSource::trace_of(const Thread& thread, const kernel_sample& sample) {
  const auto& outside = thread.outside;
  if ((sample.stack.flags & KERNEL_NOT_WALKED) != 0)
    return outside.since == sample.off_since && outside.trace ? trace_numbers_.of(*outside.trace) : 0;
  const auto found = traces_.find(static_cast<pid_t>(sample.thread));
  const bool is_last =
      sample.stack.trace != 0 && found != traces_.end() && found->second.number == sample.stack.trace;
  return is_last ? trace_numbers_.of(found->second.ids) : 0;
}

}  // namespace phlox::sampler
