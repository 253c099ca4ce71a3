#include "phlox/sampler/observe/sample_log.h"

#include <algorithm>
#include <utility>

namespace phlox::sampler {
namespace {

// Except for their times.
bool are_alike(const ThreadSample& a, const ThreadSample& b) {
  return a.cpu_state == b.cpu_state && a.gil_state == b.gil_state && a.quality == b.quality &&
         a.rejected == b.rejected && a.collecting == b.collecting && a.system_call == b.system_call &&
         a.cpu_number == b.cpu_number && a.part == b.part && a.native == b.native &&
         a.native_place == b.native_place && a.native_id == b.native_id && a.wait_target == b.wait_target &&
         a.waits_for == b.waits_for && a.code_file == b.code_file && a.waker == b.waker && a.waker == 0;
}

}  // namespace

void SampleLog::flush(ReportedThread& thread) {
  if (thread.more.samples == 0) return;
  push(thread.more);
  thread.more.samples = 0;
}

// `new_stack`: nullptr: the same as the last one sent.
void SampleLog::send(ReportedThread& thread, ThreadSample sample, const std::vector<CodeLocation>* new_stack,
                     const NativeParts& native) {
  const ThreadSample& last = thread.state;
  if (new_stack == nullptr && last.samples != 0 && are_alike(last, sample)) {
    ThreadSample& more = thread.more;
    if (more.samples == 0) {
      more = sample;
      more.keep = last.keep + last.fresh;
      more.fresh = 0;
    } else {
      join(more, sample);
    }
    thread.state.wait_since = sample.wait_since;
    if (more.wall >= kHoldBack) flush(thread);
    return;
  }
  flush(thread);
  std::span<const std::byte> body;
  size_t keep = thread.stack.size();
  if (new_stack != nullptr) {
    const size_t common = std::min(thread.stack.size(), new_stack->size());
    for (keep = 0; keep < common && thread.stack[keep] == (*new_stack)[keep];) ++keep;
    body = std::as_bytes(std::span(*new_stack).subspan(keep));
    sample.fresh = static_cast<uint32_t>(new_stack->size() - keep);
  }
  sample.keep = static_cast<uint32_t>(keep);
  if (!ring_.push(std::as_bytes(std::span(&sample, 1)), body, native.head, native.stack, native.starts,
                  native.kernel)) {
    // The consumer must not miss a part of a stack: the next one is sent whole.
    ++lost_;
    thread.stack.clear();
    thread.state.samples = 0;
    return;
  }
  if (new_stack != nullptr) thread.stack.assign(new_stack->begin(), new_stack->end());
  thread.state = sample;
  thread.state.keep = static_cast<uint32_t>(thread.stack.size());
  thread.state.fresh = 0;
  if (sample.native == NativePart::fresh) thread.state.native = NativePart::same;
}

void SampleLog::saw(ReportedThread& thread, ThreadSample sample, const std::vector<CodeLocation>* stack,
                    const NativeParts& native) {
  if (sample.cpu_state != profile::CpuState::blocked) sample.cpu = std::exchange(thread.cpu_carried, 0);
  const bool is_new = stack != nullptr && (!thread.has_stack || thread.stack != *stack);
  send(thread, sample, is_new ? stack : nullptr, native);
  thread.has_stack = thread.state.samples != 0;
  thread.last_time = sample.time;
}

void SampleLog::did_not_run(ReportedThread& thread, Nanoseconds now, uint64_t turns) {
  send(thread, same_sample(thread.state, now, thread.last_time, turns), nullptr, {});
  thread.last_time = now;
}

void SampleLog::reject(ReportedThread& thread, ThreadSample sample, Rejected why) {
  sample.quality = profile::Quality::rejected;
  sample.rejected = why;
  send(thread, sample, nullptr, {});
  thread.last_time = sample.time;
  thread.has_stack = false;
  thread.stack.clear();
  thread.state.samples = 0;
}

void SampleLog::end(ReportedThread& thread, Nanoseconds now) {
  flush(thread);
  if (thread.cpu_carried > 0 && thread.state.samples != 0) {
    ThreadSample rest = thread.state;
    rest.time = thread.last_time;
    rest.wall = 0;
    rest.cpu = std::exchange(thread.cpu_carried, 0);
    rest.samples = rest.waker = 0;
    push(rest);
  }
  ThreadEndRecord record;
  record.thread = thread.index;
  record.time = now;
  push(record);
}

}  // namespace phlox::sampler
