#include "phlox/sampler/kernel/kernel_source.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "phlox/base/clock.h"

namespace phlox::sampler {
namespace {

using profile::CpuState;
using profile::GilState;
using profile::Quality;

// Code objects that were read from outside are numbered from here on; the kernel's serials are smaller.
constexpr uint32_t kFirstParkedCode = 0x80000000;
// The stack of the last running sample says nothing about a run this much later.
constexpr Nanoseconds kStale = kSecond;
// Minimum slice: a piece of time shorter than this, and than an eighth of its window, is added to the next of
// its kind.
constexpr Nanoseconds kMinSlice = kSecond / 4000;
// The same before a wait that is reported by itself, which must keep its length.
constexpr Nanoseconds kMinSliceBeforeWait = kSecond / 50'000;

// The part of the owed time to emit now, after adding `more`.
Nanoseconds due(Nanoseconds& owed, Nanoseconds more, Nanoseconds window, Nanoseconds min_slice = kMinSlice) {
  owed += more;
  if (owed < std::min(min_slice, window / 8)) return 0;
  const Nanoseconds put = std::clamp<Nanoseconds>(owed, 0, window);
  owed -= put;
  return put;
}

// Identifies a code object by its address and its contents, without its counters.
uint64_t identity_of(const python::CodeCapture& code) {
  const auto said = std::span(code.bytes).subspan(std::min<size_t>(code.struct_size, code.bytes.size()));
  const std::string_view words(reinterpret_cast<const char*>(said.data()), said.size());
  return (std::hash<std::string_view>()(words) * 31 + code.address.value) * 31 + code.code_size;
}

Nanoseconds grown(uint64_t now, uint64_t& before) {
  const uint64_t was = std::exchange(before, now);
  return now >= was ? static_cast<Nanoseconds>(now - was) : 0;
}

}  // namespace

KernelSource::KernelSource(const python::Interpreter& interpreter, memory::RemoteMemory& memory, Ring& ring,
                           bool native, std::function<void()> renew, Nanoseconds begin)
    : layout_(interpreter.layout),
      memory_(memory),
      ring_(ring),
      log_(ring),
      native_(native),
      stacks_(layout_, memory, ring, std::move(renew)),
      begin_(begin) {}

// ---- threads

KernelSource::Thread& KernelSource::begin_thread(pid_t tid, uint64_t python_id, int64_t interpreter,
                                                 Nanoseconds now) {
  auto thread = std::make_unique<Thread>();
  thread->index = next_thread_++;
  thread->last_time = now;
  thread->runs_python = python_id != 0;
  ThreadRecord record;
  record.thread = thread->index;
  record.tid = tid;
  record.python_id = python_id;
  record.interpreter = interpreter;
  record.time = now;
  if (const auto sum = sums_.extract(tid)) {
    thread->ran = sum.mapped().sums.ran;
    thread->blocked = sum.mapped().sums.blocked;
    thread->queued = sum.mapped().sums.queued;
    if (tid == first_)
      record.used = static_cast<Nanoseconds>(thread->ran - std::min(reported_before_, thread->ran));
  }
  log_.begin(record);
  return *(threads_[tid] = std::move(thread));
}

void KernelSource::go_on_from(pid_t first, uint64_t reported_before,
                              std::unordered_map<pid_t, kernel_thread> sums) {
  first_ = first;
  reported_before_ = reported_before;
  sums_ = std::move(sums);
}

int64_t KernelSource::interpreter_id(uint64_t address) {
  const auto [known, fresh] = interpreters_.try_emplace(address, 0);
  if (fresh && layout_.interpreter.id.present())
    memory_.read_value(RemoteAddress(address) + *layout_.interpreter.id, known->second);
  return known->second;
}

// The thread had run no Python until now; its row continues (Consumer::take_over).
KernelSource::Thread& KernelSource::meets_python(pid_t tid, const KernelSample& record) {
  const std::unique_ptr<Thread> before = std::move(threads_[tid]);
  log_.flush(*before);
  const kernel_stack& stack = record.sample.stack;
  Thread& thread = begin_thread(tid, stack.python_id, interpreter_id(stack.interpreter), before->last_time);
  thread.ran = before->ran;
  thread.blocked = before->blocked;
  thread.queued = before->queued;
  thread.counted = before->counted;
  thread.cpu_carried = std::exchange(before->cpu_carried, 0);
  thread.charge = before->charge;
  log_.end(*before, before->last_time);
  return thread;
}

// nullptr: it has never run Python, and is not recorded.
KernelSource::Thread* KernelSource::thread_of(const KernelSample& record) {
  const kernel_sample& sample = record.sample;
  const auto tid = static_cast<pid_t>(sample.thread);
  const auto found = threads_.find(tid);
  if (found != threads_.end()) {
    if (sample.stack.state != 0 && !found->second->runs_python) return &meets_python(tid, record);
    return found->second.get();
  }
  if (sample.stack.state == 0 && !native_) return nullptr;
  const auto since = static_cast<Nanoseconds>(sample.ran + sample.blocked + sample.queued);
  const auto time = static_cast<Nanoseconds>(sample.time);
  const Nanoseconds begin = std::max(begin_, time - since);
  if (sample.stack.state == 0) return &begin_thread(tid, 0, 0, begin);
  return &begin_thread(tid, sample.stack.python_id, interpreter_id(sample.stack.interpreter), begin);
}

// Returns their numbers. One that was sent before and is the same keeps its number.
std::vector<uint32_t> KernelSource::tell_codes(const ParkedThreads& parked) {
  std::vector<uint32_t> numbers;
  for (const auto& code : parked.codes) {
    const auto known = static_cast<uint32_t>(parked_codes_.size());
    const auto [at, fresh] = parked_codes_.try_emplace(identity_of(*code), kFirstParkedCode + known);
    numbers.push_back(at->second);
    if (!fresh) continue;
    CodeRecord record;
    record.code = at->second;
    Handed handed{std::make_unique<python::CodeCapture>(*code), nullptr};
    (void)ring_.push_with(handed, record);
  }
  return numbers;
}

std::vector<CodeLocation> KernelSource::stack_of(const ParkedThreads::Thread& parked,
                                                 const std::vector<uint32_t>& codes) {
  std::vector<CodeLocation> stack;
  if (parked.quality == Quality::cut && parked.left_out == 0) stack.push_back({kFramesLeftOut, 0});
  if (parked.quality == Quality::detached) stack.push_back({kCallersUnknown, 0});
  for (size_t i = parked.frames.size(); i-- > 0;) {
    if (parked.left_out > 0 && i + 1 == KERNEL_MAX_FRAMES / 2)
      stack.push_back({kFramesLeftOut, static_cast<int32_t>(parked.left_out)});
    stack.push_back({codes[parked.frames[i].code], parked.frames[i].instruction});
  }
  return stack;
}

void KernelSource::begin(const ParkedThreads& parked, Nanoseconds now) {
  const std::vector<uint32_t> codes = tell_codes(parked);
  for (const auto& one : parked.threads) {
    Thread& thread = begin_thread(one.tid, one.python_id, one.interpreter, now);
    thread.asleep_stack = stack_of(one, codes);
    ThreadSample sample = sample_at(thread.index, now, now);
    sample.state.cpu_state = CpuState::blocked;
    sample.python.gil_state = one.gil;
    sample.state.system_call = one.system_call;
    sample.state.waits_for = one.waits_for;
    sample.time.wait_since = now;
    sample.state.quality = one.quality;
    NativeParts native;
    if (one.native) {
      halves_.take({*one.native, one.native_bytes}, NativeHalves::Registers::ip_and_sp);
      kernel_sample from{};
      from.thread = one.native->thread;
      from.native = from.off_since = one.native->time;
      from.stack.state = one.state;
      from.stack.left_out = static_cast<uint32_t>(one.left_out);
      native = native_of(thread, from, NativePlace::asleep, thread.asleep_stack, sample);
    }
    put(thread, Piece::sample, sample, 0, thread.asleep_stack, native);
    thread.asleep = sample;
    ++counts_.samples;
    if (one.python_id != 0) ++counts_.reads;
    count(one.quality);
  }
}

void KernelSource::flush() {
  for (auto& [tid, thread] : threads_) log_.flush(*thread);
}

// ---- which code ran

// For a thread that the clock found in its own code. Files are sent in the order of their numbers.
uint32_t KernelSource::code_file_of(const kernel_sample& sample) {
  if (native_ || code_files_ == nullptr) return 0;
  const uint32_t file = code_files_->of(sample.native, static_cast<Nanoseconds>(sample.time));
  while (code_files_reported_ < file) {
    const std::string& path = code_files_->path(code_files_reported_ + 1);
    CodeFileRecord record;
    record.code_file = code_files_reported_ + 1;
    record.size = static_cast<uint32_t>(path.size());
    if (!log_.write(record, path)) return 0;
    ++code_files_reported_;
  }
  return file;
}

// ---- time

KernelSource::Spent KernelSource::spent(Thread& thread, const kernel_sample& sample) {
  Spent spent;
  spent.ran = grown(sample.ran, thread.ran);
  spent.blocked = grown(sample.blocked, thread.blocked);
  spent.queued = grown(sample.queued, thread.queued);
  spent.window = std::max<Nanoseconds>(static_cast<Nanoseconds>(sample.time) - thread.last_time, 0);
  // A thread that was parked before the kernel was asked has been blocked since it was read.
  const Nanoseconds rest = spent.window - spent.ran - spent.blocked - spent.queued;
  if (!std::exchange(thread.counted, true) && thread.asleep && rest > 0) spent.blocked += rest;
  return spent;
}

ThreadSample KernelSource::sample_of(const Thread& thread, const kernel_sample& sample, Quality quality) {
  ThreadSample record = sample_at(thread.index, 0, 0);
  record.state.trace = trace_of(thread, sample);
  record.state.quality = quality;
  record.state.cpu_number = sample.cpu;
  record.python.collecting = (sample.stack.flags & KERNEL_COLLECTING) != 0;
  if (layout_.traits.free_threaded || !thread.runs_python) {
    record.python.gil_state = GilState::not_applicable;
  } else if ((sample.stack.flags & KERNEL_HOLDS_GIL) != 0) {
    record.python.gil_state = GilState::holds;
  } else if ((sample.stack.flags & KERNEL_WAITS_GIL) != 0) {
    record.python.gil_state = GilState::waits;
  } else {
    record.python.gil_state =
        (sample.stack.flags & KERNEL_GIL_UNKNOWN) != 0 ? GilState::unknown : GilState::none;
  }
  return record;
}

// The next piece of the thread's time.
void KernelSource::put(Thread& thread, Piece piece, ThreadSample& sample, Nanoseconds wall,
                       const std::vector<CodeLocation>& stack, const NativeParts& native) {
  ThreadSample one = sample;
  one.time.wall = wall;
  one.time.end = thread.last_time + wall;
  one.time.samples = 1;
  one.part = piece == Piece::part;
  const bool fresh = one.native.part == NativePart::fresh;
  log_.saw(thread, one, &stack, fresh ? native : NativeParts());
  if (fresh) sample.native.part = NativePart::kept;
}

// The native half that the kernel's sample names, in the form for the consumer.
NativeParts KernelSource::native_of(Thread& thread, const kernel_sample& from, NativePlace place,
                                    const std::vector<CodeLocation>& stack, ThreadSample& sample) {
  if (!native_ || from.native == 0 || (from.stack.flags & KERNEL_NOT_WALKED) != 0) return {};
  Thread::Sent& sent = thread.native[static_cast<size_t>(place)];
  sample.native.place = place;
  if (sent.time == from.native) {
    sample.native.part = NativePart::kept;
    sample.native.id = sent.id;
    return {};
  }
  const bool marked = !stack.empty() && (stack[0].code == kFramesLeftOut || stack[0].code == kCallersUnknown);
  StackShape shape{stack.size(), marked ? size_t{1} : 0, from.stack.left_out};
  if (&stack == &KernelStacks::kFramesNotRead) shape = {};
  const auto parts = halves_.parts(layout_, from, shape);
  if (parts.head.empty()) return {};
  sample.native.part = NativePart::fresh;
  sample.native.id = next_native_++;
  sent = {from.native, sample.native.id};
  return parts;
}

void KernelSource::found_running(Thread& thread, const kernel_sample& sample, const Spent& spent,
                                 Quality quality, const std::vector<CodeLocation>& stack) {
  const Nanoseconds carried = std::exchange(thread.cpu_carried, 0) + spent.ran;
  thread.charge.add(spent.ran, spent.blocked > 0);
  const Nanoseconds charged = thread.charge.charge(carried, interval_);
  Nanoseconds own = spent.window;
  ThreadSample now = sample_of(thread, sample, quality);
  const auto native = native_of(thread, sample, NativePlace::awake, stack, now);
  const Nanoseconds slept = due(thread.owed_asleep, spent.blocked, own);
  own -= slept;
  if (slept > 0) put_short_waits(thread, slept, now, stack, native);
  now.state.cpu_state = CpuState::runnable;
  const Nanoseconds queued = spent.queued >= std::min(kMinSlice, own / 8) ? std::min(spent.queued, own) : 0;
  if (queued > 0) put(thread, Piece::part, now, queued, stack, native);
  now.state.cpu_state = CpuState::running;
  now.state.code_file = code_file_of(sample);
  thread.cpu_carried = charged;
  put(thread, Piece::sample, now, own - queued, stack, native);
  thread.cpu_carried += carried - charged;
  thread.awake = now;
  thread.awake->time.end = thread.last_time;
  thread.awake_stack = stack;
}

void KernelSource::came_back(Thread& thread, const KernelSample& record, const Spent& spent, Quality quality,
                             const std::vector<CodeLocation>& stack) {
  const kernel_sample& sample = record.sample;
  // CPU time is carried to a sample of the clock.
  const Nanoseconds carried = std::exchange(thread.cpu_carried, 0) + spent.ran;
  thread.charge.add(spent.ran, spent.blocked > 0);
  // The time of several short waits belongs to this stack; a long wait gets only its own.
  const Nanoseconds all = spent.blocked + spent.queued;
  const Nanoseconds away = (sample.stack.flags & KERNEL_TOGETHER) != 0
                               ? all
                               : std::min(static_cast<Nanoseconds>(sample.time - sample.off_since), all);
  ThreadSample now = sample_of(thread, sample, quality);
  const NativePlace place = away > spent.queued ? NativePlace::asleep : NativePlace::queued;
  const auto native = native_of(thread, sample, place, stack, now);
  now.state.cpu_state = CpuState::running;
  Nanoseconds own = spent.window;
  const Nanoseconds ran = due(thread.owed_awake, spent.ran, own, kMinSliceBeforeWait);
  own -= ran;
  if (ran > 0) put_run(thread, now, (sample.stack.flags & KERNEL_HELD_GIL) != 0, ran, stack, native);
  if (thread.asleep || !thread.awake) {
    const bool ran_before = thread.awake && thread.last_time - thread.awake->time.end < kStale;
    const Nanoseconds earlier = due(thread.owed_asleep, all - away, own, kMinSliceBeforeWait);
    own -= earlier;
    const auto& run = ran_before ? *thread.awake : now;
    if (earlier > 0) put_short_waits(thread, earlier, run, ran_before ? thread.awake_stack : stack, native);
  }
  // A thread that was only pre-empted has not blocked, however briefly it ran before.
  const Nanoseconds queued = spent.blocked > 0 ? std::min(std::min(spent.queued, away), own) : own;
  now.state.cpu_state = CpuState::blocked;
  now.state.system_call = sample.system_call;
  if (own > queued) {
    // The waker and the target of the last wait do not belong to the stack that stands in for it.
    if ((sample.stack.flags & KERNEL_STANDS_IN) == 0) {
      // A wait for the GIL times out every few milliseconds, to ask for it again.
      const bool may_want_gil =
          now.python.gil_state == GilState::waits || now.python.gil_state == GilState::unknown;
      if (!may_want_gil || sample.waker.ended != KERNEL_ENDED_BY_TIMEOUT) now.state.waker = waker_of(sample);
      now.state.wait_target = wait_target_of(thread, sample);
      now.state.waits_for = record.waits_for;
    }
    now.time.wait_since = static_cast<Nanoseconds>(sample.off_since);
    put(thread, Piece::sample, now, own - queued, stack, native);
    now.state.waker = 0;
    thread.asleep = now;
    thread.asleep_stack = stack;
    thread.slept_until = thread.last_time;
  }
  now.state.cpu_state = CpuState::runnable;
  now.state.system_call = -1;
  if (queued > 0) put(thread, own > queued ? Piece::part : Piece::sample, now, queued, stack, native);
  thread.cpu_carried = carried;
  thread.came_back = thread.last_time;
  thread.wanted_gil = now.python.gil_state == GilState::waits;
  thread.handed_gil = thread.wanted_gil && sample.waker.thread != 0;
}

// Reports the run before the thread left its CPU as in `left`: as the clock last found it. If the clock has
// not found it since it came back, it held the GIL if no other thread took that after it, or if it had waited
// for the GIL and was handed it: take_gil() wakes every few milliseconds to ask for it, and then waits on.
void KernelSource::put_run(Thread& thread, const ThreadSample& left, bool held, Nanoseconds ran,
                           const std::vector<CodeLocation>& stack, const NativeParts& native) {
  const bool fresh = thread.awake && thread.last_time - thread.awake->time.end < kStale;
  ThreadSample run = fresh ? *thread.awake : left;
  const bool found_since = fresh && thread.awake->time.end > thread.came_back;
  const bool wants_again = left.python.gil_state == GilState::waits;
  if (!found_since && !layout_.traits.free_threaded) {
    if (held || (thread.wanted_gil && (thread.handed_gil || !wants_again))) {
      run.python.gil_state = GilState::holds;
    } else if (thread.wanted_gil || run.python.gil_state == GilState::waits) {
      run.python.gil_state = GilState::none;
    }
  }
  // Between two samples it may have worked for another span.
  if (!found_since && run.state.trace != left.state.trace) run.state.trace = 0;
  // The wait before this one may still get more time, so its native frames stay where they are kept.
  if (run.native.part == NativePart::fresh) run.native.place = NativePlace::queued;
  put(thread, Piece::part, run, ran, fresh ? thread.awake_stack : stack, native);
}

void KernelSource::count(Quality quality) {
  if (quality == Quality::detached) ++counts_.detached;
  if (quality == Quality::cut) ++counts_.cut;
}

void KernelSource::take(const KernelSample& record) {
  const kernel_sample& sample = record.sample;
  if (record.has_frames()) stacks_.keep(record);
  if (sample.head.type == KERNEL_STACK) return;
  ++samples_;
  Thread* thread = thread_of(record);
  if (thread == nullptr) return;
  const Spent spent = this->spent(*thread, sample);
  if (sample.stack.end == KERNEL_END_NO_STATE && !native_) {
    // Its time belongs to no Python until it comes back with a thread state.
    log_.flush(*thread);
    thread->has_stack = false;
    thread->last_time = static_cast<Nanoseconds>(sample.time);
    thread->awake.reset();
    thread->asleep.reset();
    return;
  }
  ++counts_.samples;
  if (sample.stack.end == KERNEL_END_UNREADABLE || sample.stack.end == KERNEL_END_BROKEN) {
    const bool broken = sample.stack.end == KERNEL_END_BROKEN;
    if (!broken) stacks_.bring_in(sample.stack.hash);
    ThreadSample rejected = sample_at(thread->index, thread->last_time + spent.window, thread->last_time);
    rejected.time.cpu = std::exchange(thread->cpu_carried, 0) + spent.ran;
    rejected.python.gil_state = sample_of(*thread, sample, Quality::rejected).python.gil_state;
    log_.reject(*thread, rejected, broken ? Rejected::broken : Rejected::unreadable);
    ++(broken ? counts_.broken : counts_.unreadable);
    thread->awake.reset();
    thread->asleep.reset();
    return;
  }
  if (sample.stack.end != KERNEL_END_NO_STATE) ++counts_.reads;
  const bool is_walked = sample.off_since == 0 || (sample.stack.flags & KERNEL_NOT_WALKED) == 0;
  if (!is_walked) unread_until_ = static_cast<Nanoseconds>(sample.time);
  if (const auto& outside = thread->outside;
      !is_walked && outside.since == sample.off_since && !outside.stack.empty()) {
    KernelSample read = record;
    if (outside.gil == GilState::waits) read.sample.stack.flags |= KERNEL_WAITS_GIL;
    count(outside.quality);
    came_back(*thread, read, spent, outside.quality, outside.stack);
    return;
  }
  const bool is_cut =
      sample.stack.end == KERNEL_END_FULL || (sample.stack.left_out > 0 && sample.stack.count > 0);
  const Quality quality = sample.stack.end == KERNEL_END_DETACHED ? Quality::detached
                          : is_cut                                ? Quality::cut
                                                                  : Quality::ok;
  count(quality);
  const std::vector<CodeLocation>& stack = stacks_.of(record);
  if (sample.off_since == 0) {
    found_running(*thread, sample, spent, quality, stack);
  } else {
    came_back(*thread, record, spent, quality, stack);
  }
}

void KernelSource::renewed() {
  for (auto& [tid, thread] : threads_) thread->ran = thread->blocked = thread->queued = 0;
  sums_.clear();
}

Counts KernelSource::counts() const {
  Counts counts = counts_;
  counts.lost = log_.lost();
  counts.not_read = stacks_.not_read();
  return counts;
}

}  // namespace phlox::sampler
