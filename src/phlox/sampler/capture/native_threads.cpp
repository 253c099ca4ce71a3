#include "phlox/sampler/capture/native_threads.h"

#include <dirent.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "phlox/sampler/capture/found_state.h"
#include "phlox/sampler/capture/schedule.h"

namespace phlox::sampler {
namespace {

// The numbers of these threads on the ring start here, apart from those of Python threads.
constexpr uint32_t kNumbersFrom = 0x80000000;
constexpr size_t kMostThreads = 65536;
// Listing takes about 0.6 us per thread: at this rate 0.1 % of a CPU for 300 of them.
constexpr Nanoseconds kListEvery = kSecond / 5;
constexpr Nanoseconds kListEveryPerThread = kSecond / 1600;
// A dump retries a thread this many times.
constexpr uint32_t kEmptySamples = 3;
// With fewer threads than this, each is checked in every turn.
constexpr size_t kFewNativeThreads = 8;

}  // namespace

void NativeThreads::list(Nanoseconds now, const std::function<bool(pid_t)>& is_python) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task", pid_);
  DIR* directory = ::opendir(path);
  if (directory == nullptr) return;
  std::unordered_set<pid_t> there;
  while (const dirent* entry = ::readdir(directory)) {
    const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (tid > 0 && !is_python(tid) && there.size() < kMostThreads) there.insert(tid);
  }
  ::closedir(directory);
  next_list_ = now + kListEvery + static_cast<Nanoseconds>(there.size()) * kListEveryPerThread;
  for (auto& slot : slots_) {
    if (there.erase(slot->tid) == 0) slot->alive = false;
  }
  std::erase_if(kernel_workers_, [&](pid_t tid) { return there.erase(tid) == 0; });
  for (const pid_t tid : there) {
    auto slot = std::make_unique<Slot>();
    slot->index = kNumbersFrom | next_++;
    slot->tid = tid;
    slot->probe = std::make_unique<process::ThreadProbe>(pid_, tid);
    slot->last_time = now;
    const auto stat = slot->probe->schedstat();
    const auto task = slot->probe->stat();
    if (!stat || !task || task->has_ended()) continue;
    if (process::is_kernel_worker(task->flags)) {
      kernel_workers_.insert(tid);
      continue;
    }
    slot->seen = *stat;
    ThreadRecord record;
    record.thread = slot->index;
    record.tid = tid;
    record.used = static_cast<Nanoseconds>(stat->run_ns);
    record.time = now;
    log_.begin(record);
    slots_.push_back(std::move(slot));
  }
}

void NativeThreads::did_not_run(Slot& slot, const process::SchedStat& stat, Nanoseconds now) {
  numbers_.samples += slot.did_not_run(log_, stat, tick_, now);
  slot.next_tick =
      tick_ + idle_pause(slot.idle_samples,
                         slots_.size() > kFewNativeThreads ? kLongestIdlePause : native_.longest_pause());
}

void NativeThreads::reject(Slot& slot, Nanoseconds now) {
  slot.reject(log_, profile::GilState::not_applicable, now, Rejected::moved);
  ++numbers_.samples;
  ++numbers_.rejected;
}

void NativeThreads::sample(Slot& slot, Nanoseconds now) {
  slot.event = native_.event_state(slot.tid, now - slot.last_time);
  if (slot.event.kind == EventState::Kind::awake) return;
  if (slot.was_blocked && slot.has_stack && slot.event.asleep_since(slot.blocked_since)) {
    did_not_run(slot, slot.seen, now);
    return;
  }
  const Attempted next = attempt(numbers_.retried, [&](int number) { return read_once(slot, now, number); });
  if (next == Attempted::ended) slot.alive = false;
  if (next == Attempted::again || next == Attempted::refused) reject(slot, now);
}

Attempted NativeThreads::read_once(Slot& slot, Nanoseconds now, int number) {
  const auto before = slot.probe->schedstat();
  if (!before) return Attempted::ended;
  if (slot.has_slept_on(*before)) {
    did_not_run(slot, *before, now);
    return Attempted::settled;
  }
  unwind::Registers registers;
  auto held = NativeCapture::Held::running;
  const bool caught = number == 0 && slot.event.kind == EventState::Kind::preempted;
  NativeCapture* const source =
      native_.hold(slot.tid, *slot.probe, now - slot.last_time, caught, registers, held);
  if (const Attempted next = attempted(held); next != Attempted::go_on) return next;
  native_.begin_sample();
  const bool copied = native_.copy().take(memory_, registers, native_.name_of(source),
                                          source->kernel_frames(), slot.c_stack_end);
  const auto after = slot.probe->schedstat();
  source->let_go();
  if (!after) return Attempted::ended;
  if (source->needs_proof() && !unmoved(*before, *after)) return Attempted::again;
  if (!copied) return Attempted::refused;
  native_.taken();
  accept(slot, *after, now, !native_.proves(source) || (after->off() && source->needs_proof()));
  return Attempted::settled;
}

void NativeThreads::accept(Slot& slot, const process::SchedStat& stat, Nanoseconds now, bool unproved) {
  ThreadSample sample = sample_at(slot.index, now, slot.last_time);
  sample.python.gil_state = profile::GilState::not_applicable;
  sample.native.part = NativePart::fresh;
  if (unproved) sample.state.quality = profile::Quality::unproved;
  slot.cpu_carried += static_cast<Nanoseconds>((stat - slot.seen).run_ns);
  sample.time.ran = native_.ran_between(slot.seen, stat);
  if (const process::BlockedIn* in = native_.blocked_in()) {
    sample.state.cpu_state = profile::CpuState::blocked;
    sample.state.system_call = static_cast<int16_t>(in->number);
    sample.time.wait_since = now;
    // Threads without Python poll rarely; arguments in memory would have to be proved.
    if (!process::stands_in_memory(*in)) sample.state.waits_for = process::waits_for(*in, memory_);
  } else {
    set_awake(sample.state, native_.waited_for_cpu(), held_state(stat, slot.seen));
  }
  slot.saw(log_, sample, stat, tick_, nullptr, native_.parts_for(sample.native.part));
  ++numbers_.samples;
}

bool NativeThreads::is_over(const Slot& slot) const {
  return native_.sampled_once() && (slot.has_stack || slot.empty_samples >= kEmptySamples);
}

size_t NativeThreads::unseen() const {
  return static_cast<size_t>(std::count_if(
      slots_.begin(), slots_.end(), [this](const auto& slot) { return slot->alive && !is_over(*slot); }));
}

void NativeThreads::turn(uint64_t tick, Nanoseconds now, Nanoseconds deadline,
                         const std::function<bool(pid_t)>& is_python) {
  tick_ = tick;
  if (now >= next_list_) list(now, is_python);
  const size_t count = slots_.size();
  size_t next_first = 0;
  bool sampled = false;
  for (size_t i = 0; i < count; ++i) {
    Slot& slot = *slots_[(first_ + i) % count];
    if (slot.next_tick > tick_) continue;
    if (is_over(slot) || (slot.has_stack && now - slot.last_time < native_.soonest_again())) continue;
    if (is_python(slot.tid)) {
      slot.alive = false;  // it runs Python by now and is sampled as a Python thread
      continue;
    }
    if (sampled && clock_now() >= deadline) {
      next_first = first_ + i;
      break;
    }
    sample(slot, now);
    sampled = true;
  }
  first_ = count > 0 ? next_first % count : 0;
  if (std::any_of(slots_.begin(), slots_.end(), [](const auto& slot) { return !slot->alive; }))
    drop_dead(now);
}

void NativeThreads::drop_dead(Nanoseconds now) {
  for (auto& slot : slots_) {
    if (slot->alive) continue;
    log_.end(*slot, now);
  }
  std::erase_if(slots_, [](const auto& slot) { return !slot->alive; });
}

void NativeThreads::flush() {
  for (auto& slot : slots_) log_.flush(*slot);
}

void NativeThreads::finish(Nanoseconds now) {
  for (auto& slot : slots_) slot->alive = false;
  drop_dead(now);
}

}  // namespace phlox::sampler
