#include "phlox/sampler/capture/look_log.h"

#include <algorithm>
#include <utility>

namespace phlox::sampler {
namespace {

// But for their times.
bool are_alike(const LookRecord& a, const LookRecord& b) {
  return a.cpu_state == b.cpu_state && a.gil_state == b.gil_state && a.quality == b.quality &&
         a.rejected == b.rejected && a.collecting == b.collecting && a.system_call == b.system_call &&
         a.cpu_number == b.cpu_number && a.part == b.part && a.native == b.native &&
         a.native_place == b.native_place && a.native_id == b.native_id && a.awaited == b.awaited &&
         a.awaits == b.awaits && a.code_file == b.code_file && a.wake == b.wake && a.wake == 0;
}

}  // namespace

void LookLog::flush(ObservedThread& thread) {
  if (thread.more.looks == 0) return;
  push(thread.more);
  thread.more.looks = 0;
}

// `new_stack`: nullptr: it is the one sent last.
void LookLog::send(ObservedThread& thread, LookRecord look, const std::vector<CodeLocation>* new_stack,
                   const NativeCopy::Parts& native) {
  const LookRecord& last = thread.state;
  if (new_stack == nullptr && last.looks != 0 && are_alike(last, look)) {
    LookRecord& more = thread.more;
    if (more.looks == 0) {
      more = look;
      more.keep = last.keep + last.fresh;
      more.fresh = 0;
    } else {
      join(more, look);
    }
    thread.state.wait_since = look.wait_since;
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
    look.fresh = static_cast<uint32_t>(new_stack->size() - keep);
  }
  look.keep = static_cast<uint32_t>(keep);
  if (!ring_.push(std::as_bytes(std::span(&look, 1)), body, native.head, native.stack, native.starts,
                  native.kernel)) {
    // The consumer must not miss a part of a stack: the next one is sent whole.
    ++lost_;
    thread.stack.clear();
    thread.state.looks = 0;
    return;
  }
  if (new_stack != nullptr) thread.stack.assign(new_stack->begin(), new_stack->end());
  thread.state = look;
  thread.state.keep = static_cast<uint32_t>(thread.stack.size());
  thread.state.fresh = 0;
  if (look.native == NativePart::fresh) thread.state.native = NativePart::same;
}

void LookLog::saw(ObservedThread& thread, LookRecord look, const target::SchedStat& stat, uint64_t tick,
                  const std::vector<CodeLocation>* stack, const NativeCopy::Parts& native) {
  const bool blocked = look.cpu_state == profile::CpuState::blocked;
  if (!blocked) look.cpu = std::exchange(thread.cpu_carried, 0);
  const bool is_new = stack != nullptr && (!thread.has_stack || thread.stack != *stack);
  send(thread, look, is_new ? stack : nullptr, native);
  thread.has_stack = thread.state.looks != 0;
  thread.seen = stat;
  thread.last_time = look.time;
  thread.was_blocked = blocked;
  thread.blocked_since = blocked ? thread.event.last : 0;
  thread.idle_looks = thread.vain_looks = 0;
  thread.last_tick = tick;
  thread.next_tick = tick + 1;
}

uint64_t LookLog::did_not_run(ObservedThread& thread, const target::SchedStat& stat, uint64_t tick,
                              Nanoseconds now) {
  const uint64_t turns = tick - std::exchange(thread.last_tick, tick);
  send(thread, same_look(thread.state, now, thread.last_time, turns), nullptr, {});
  thread.seen = stat;
  thread.last_time = now;
  ++thread.idle_looks;
  return turns;
}

void LookLog::reject(ObservedThread& thread, profile::GilState gil, Nanoseconds now, Rejected why) {
  LookRecord look = look_at(thread.index, now, thread.last_time);
  look.gil_state = gil;
  if (const auto stat = thread.probe->schedstat()) {
    look.cpu = std::exchange(thread.cpu_carried, 0) + static_cast<Nanoseconds>((*stat - thread.seen).run_ns);
    thread.seen = *stat;
  }
  reject(thread, look, why);
}

void LookLog::reject(ObservedThread& thread, LookRecord look, Rejected why) {
  look.quality = profile::Quality::rejected;
  look.rejected = why;
  send(thread, look, nullptr, {});
  thread.last_time = look.time;
  thread.was_blocked = thread.has_stack = false;
  thread.stack.clear();
  thread.state.looks = 0;
  ++thread.vain_looks;
}

void LookLog::end(ObservedThread& thread, Nanoseconds now) {
  flush(thread);
  if (thread.cpu_carried > 0 && thread.state.looks != 0) {
    LookRecord rest = thread.state;
    rest.time = thread.last_time;
    rest.wall = 0;
    rest.cpu = std::exchange(thread.cpu_carried, 0);
    rest.looks = rest.wake = 0;
    push(rest);
  }
  ThreadEndRecord record;
  record.thread = thread.index;
  record.time = now;
  push(record);
}

}  // namespace phlox::sampler
