#include "phlox/sampler/observe/sample_log.h"

#include <algorithm>
#include <utility>

namespace phlox::sampler {
namespace {

// Except for their times.
bool are_alike(const ThreadSample& a, const ThreadSample& b) {
  return a.state == b.state && a.python == b.python && a.native == b.native && a.part == b.part &&
         a.state.waker == 0;
}

}  // namespace

void SampleLog::flush(ReportedThread& thread) {
  if (thread.more.time.samples == 0) return;
  push(thread.more);
  thread.more.time.samples = 0;
}

// `new_stack`: nullptr: the same as the last one sent.
void SampleLog::send(ReportedThread& thread, ThreadSample sample, const std::vector<CodeLocation>* new_stack,
                     const NativeParts& native) {
  const ThreadSample& last = thread.sent;
  if (new_stack == nullptr && last.time.samples != 0 && are_alike(last, sample)) {
    ThreadSample& more = thread.more;
    if (more.time.samples == 0) {
      more = sample;
      more.stack.keep = last.stack.keep + last.stack.fresh;
      more.stack.fresh = 0;
    } else {
      join(more, sample);
    }
    thread.sent.time.wait_since = sample.time.wait_since;
    if (more.time.wall >= kHoldBack) flush(thread);
    return;
  }
  flush(thread);
  std::span<const std::byte> body;
  size_t keep = thread.stack.size();
  if (new_stack != nullptr) {
    const size_t common = std::min(thread.stack.size(), new_stack->size());
    for (keep = 0; keep < common && thread.stack[keep] == (*new_stack)[keep];) ++keep;
    body = std::as_bytes(std::span(*new_stack).subspan(keep));
    sample.stack.fresh = static_cast<uint32_t>(new_stack->size() - keep);
  }
  sample.stack.keep = static_cast<uint32_t>(keep);
  if (!ring_.push(std::as_bytes(std::span(&sample, 1)), body, native.head, native.stack, native.starts,
                  native.kernel)) {
    // The consumer must not miss a part of a stack: the next one is sent whole.
    ++lost_;
    thread.stack.clear();
    thread.sent.time.samples = 0;
    return;
  }
  if (new_stack != nullptr) thread.stack.assign(new_stack->begin(), new_stack->end());
  thread.sent = sample;
  thread.sent.stack.keep = static_cast<uint32_t>(thread.stack.size());
  thread.sent.stack.fresh = 0;
  if (sample.native.part == NativePart::fresh) thread.sent.native.part = NativePart::same;
}

void SampleLog::saw(ReportedThread& thread, ThreadSample sample, const std::vector<CodeLocation>* stack,
                    const NativeParts& native) {
  if (charges(sample)) sample.time.cpu = std::exchange(thread.cpu_carried, 0);
  const bool is_new = stack != nullptr && (!thread.has_stack || thread.stack != *stack);
  send(thread, sample, is_new ? stack : nullptr, native);
  thread.has_stack = thread.sent.time.samples != 0;
  thread.last_time = sample.time.end;
}

void SampleLog::did_not_run(ReportedThread& thread, Nanoseconds now, uint64_t turns) {
  send(thread, same_sample(thread.sent, now, thread.last_time, turns), nullptr, {});
  thread.last_time = now;
}

void SampleLog::reject(ReportedThread& thread, ThreadSample sample, Rejected why) {
  sample.state.quality = profile::Quality::rejected;
  sample.state.rejected = why;
  send(thread, sample, nullptr, {});
  thread.last_time = sample.time.end;
  thread.has_stack = false;
  thread.stack.clear();
  thread.sent.time.samples = 0;
}

void SampleLog::end(ReportedThread& thread, Nanoseconds now) {
  flush(thread);
  if (thread.cpu_carried > 0 && thread.sent.time.samples != 0) {
    ThreadSample rest = thread.sent;
    rest.time.end = thread.last_time;
    rest.time.wall = 0;
    rest.time.cpu = std::exchange(thread.cpu_carried, 0);
    rest.time.samples = rest.state.waker = 0;
    push(rest);
  }
  ThreadEndRecord record;
  record.thread = thread.index;
  record.time = now;
  push(record);
}

}  // namespace phlox::sampler
