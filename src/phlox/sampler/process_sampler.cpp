#include "phlox/sampler/process_sampler.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "phlox/base/load.h"
#include "phlox/python/line_table.h"
#include "phlox/sampler/native_half.h"
#include "phlox/sampler/native_threads.h"
#include "phlox/sampler/schedule.h"
#include "phlox/target/maps.h"

namespace phlox::sampler {
namespace {

using profile::CpuState;
using profile::GilState;
using profile::Quality;
using python::RawFrame;
using python::WalkEnd;

// A stack with more Python frames keeps this many at the leaf and at the root, and a marker between.
constexpr size_t kKeepLeaf = 1024;
constexpr size_t kKeepRoot = 512;
constexpr size_t kMaxFrames = 65536;
// Caps on what another process's lists may claim.
constexpr size_t kMaxInterpreters = 1024;
constexpr size_t kMaxThreads = 65536;
// The list of threads is read again at least this often, and whenever its head changed.
constexpr Nanoseconds kRefreshEvery = 10 * kSecond;
constexpr Nanoseconds kShortestRefreshPause = 2'000'000;
constexpr size_t kThreadsPerTurn = 64;
constexpr size_t kNewThreadsPerTurn = 16;
// Threads whose CPU is asked for together with the GIL's holder.
constexpr size_t kScouted = 32;
// Below this many threads everybody is asked at every turn.
constexpr size_t kFewThreads = 32;
// An interpreter can be ended and begun again where nobody looks, and count its code objects anew.
constexpr Nanoseconds kEpochsLast = kSecond / 10;

#if defined(__x86_64__)
constexpr int64_t kFutex = 202;
#elif defined(__aarch64__)
constexpr int64_t kFutex = 98;
#endif

// What is read while this lives is a thread's own.
class ReadAs {
 public:
  ReadAs(Snapshot& snapshot, Snapshot::Reader reader) : snapshot_(snapshot) { snapshot_.read_as(reader); }
  ~ReadAs() { snapshot_.read_as(Snapshot::kEverybody); }
  ReadAs(const ReadAs&) = delete;
  ReadAs& operator=(const ReadAs&) = delete;

 private:
  Snapshot& snapshot_;
};

}  // namespace

ProcessSampler::ProcessSampler(const Config& config, const python::Interpreter& interpreter,
                               memory::RemoteMemory& memory, Ring& ring, Workers& workers)
    : config_(config),
      interpreter_(interpreter),
      layout_(interpreter_.layout),
      memory_(memory),
      workers_(workers),
      log_(ring),
      snapshot_(memory),
      codes_(layout_, memory, ring),
      frames_(static_cast<python::RawFrame*>(std::calloc(kMaxFrames, sizeof(python::RawFrame)))),
      task_ids_(config.pid, memory) {
  if (!frames_) throw std::bad_alloc();
  locations_.reserve(kKeepLeaf + kKeepRoot + 1);
  if (config_.native) {
    native_ = std::make_unique<NativeHalf>(config_.pid, *config_.native, config_.interval, config_.real_time,
                                           counts_, workers_);
    native_threads_ = std::make_unique<NativeThreads>(config_.pid, memory_, log_, *native_);
  }
}

ProcessSampler::~ProcessSampler() = default;

// ---- who is there
// ----------------------------------------------------------------------------------------------

ProcessSampler::Slot* ProcessSampler::find_slot(RemoteAddress tstate) {
  const auto found = by_tstate_.find(tstate.value);
  return found == by_tstate_.end() ? nullptr : found->second;
}

// Only for the list of threads: whoever is looked at has his thread state in the plan.
void ProcessSampler::bring(RemoteAddress tstate) {
  snapshot_.want(tstate, *layout_.thread.size, /*in_passing=*/true);
}

template <class T>
bool ProcessSampler::read_list(RemoteAddress from, T& into) {
  return lists_are_copied_ ? snapshot_.load(from, into) : memory_.read_value(from, into);
}

bool ProcessSampler::refresh_interpreters() {
  std::vector<Domain> domains;
  RemoteAddress at;
  if (!read_list(interpreter_.interpreters_head, at.value)) return false;
  while (at && domains.size() < kMaxInterpreters) {
    if (!is_plausible(at)) return false;
    if (std::any_of(domains.begin(), domains.end(), [&](const Domain& d) { return d.interpreter == at; }))
      break;
    Domain domain;
    domain.interpreter = at;
    domain.threads_head_word = at + *layout_.interpreter.threads_head;
    if (!read_list(domain.threads_head_word, domain.threads_head.value)) return false;
    if (layout_.interpreter.id.present()) read_list(at + *layout_.interpreter.id, domain.id);
    if (layout_.traits.gil == python::GilOwner::interpreter && layout_.interpreter.ceval_gil.present()) {
      read_list(at + *layout_.interpreter.ceval_gil, domain.gil.value);
    } else {
      domain.gil = interpreter_.gil;
    }
    domains.push_back(domain);
    if (!layout_.interpreter.next.present() || !read_list(at + *layout_.interpreter.next, at.value)) break;
  }
  if (domains.empty()) return false;
  for (auto& domain : domains) {
    for (const auto& old : domains_) {
      if (old.interpreter == domain.interpreter) domain.runner = old.runner;
    }
  }
  domains_ = std::move(domains);
  return true;
}

// Whose C stack the frames of a subinterpreter's first thread state hang on: tstate->cframe points into it
// while Python runs there (3.10 to 3.12), and into the thread state itself else. glibc keeps a thread's
// struct pthread, whose address is its Python id, in the mapping of its stack (nptl/allocatestack.c).
// nullptr: nobody's, or it is not known.
ProcessSampler::Slot* ProcessSampler::find_thread_of(Slot& unbound) {
  uint64_t cframe = 0;
  if (!layout_.thread.cframe.present() ||
      !memory_.read_value(unbound.tstate + *layout_.thread.cframe, cframe) ||
      cframe - unbound.tstate.value < *layout_.thread.size) {
    return nullptr;
  }
  const auto maps = target::read_maps(config_.pid);
  if (!maps) return nullptr;
  const auto stack = std::find_if(maps->begin(), maps->end(),
                                  [&](const target::Mapping& m) { return m.holds(RemoteAddress(cframe)); });
  if (stack == maps->end()) return nullptr;
  for (auto& slot : slots_) {
    if (!slot->alive || slot->unbound) continue;
    const bool main_stack = stack->path == "[stack]" && slot->probe->tid() == config_.pid;
    if (!main_stack && !stack->holds(RemoteAddress(slot->python_id))) continue;
    unbound.stack_start = stack->start;
    unbound.stack_end = stack->end;
    return slot.get();
  }
  return nullptr;
}

bool ProcessSampler::is_on_its_stack(const Slot& slot, const std::byte* thread) const {
  if (!layout_.thread.cframe.present()) return true;  // not known: such a look is unproved
  const RemoteAddress cframe(load<uint64_t>(thread + *layout_.thread.cframe));
  return cframe.value - slot.tstate.value < *layout_.thread.size ||
         (cframe >= slot.stack_start && cframe < slot.stack_end);
}

ProcessSampler::Slot* ProcessSampler::find_resting(pid_t tid, int64_t interpreter_id) {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const auto& slot) {
    return slot->alive && !slot->tstate && slot->probe->tid() == tid &&
           slot->interpreter_id == interpreter_id;
  });
  return found == slots_.end() ? nullptr : found->get();
}

// Nobody is found by its thread state any more.
void ProcessSampler::forget_state(Slot& slot) {
  const auto found = by_tstate_.find(slot.tstate.value);
  if (found != by_tstate_.end() && found->second == &slot) by_tstate_.erase(found);
  for (auto& domain : domains_) {
    if (domain.runner == &slot) domain.runner = nullptr;
  }
}

// Its thread state is gone. The thread itself may live on, and come back with another.
void ProcessSampler::lose_state(Slot& slot) {
  forget_state(slot);
  slot.tstate = {};
  if (slot.unbound || !slot.probe->schedstat()) {
    slot.alive = false;
    return;
  }
  if (native_) return;  // looked at as ever: its native frames are all there is
  log_.flush(slot);
  slot.has_stack = slot.was_blocked = false;
}

void ProcessSampler::pause_idle(Slot& slot) {
  const uint64_t few = native_ ? native_->longest_pause() : 1;
  slot.next_tick = tick_ + idle_pause(slot.idle_looks, slots_.size() > kFewThreads ? kLongestIdlePause : few);
}

// Nothing to see of it; what it does until it is in Python again is not to be charged to what it does there.
void ProcessSampler::look_at_resting(Slot& slot, Nanoseconds now) {
  const auto stat = slot.probe->schedstat();
  if (!stat) {
    slot.alive = false;
    return;
  }
  slot.idle_looks = unmoved(slot.seen, *stat) ? slot.idle_looks + 1 : 0;
  pause_idle(slot);
  slot.seen = *stat;
  slot.last_time = now;
}

// The thread that a fork left without itself: what was its id, or its stack, is another thread's by now. That
// one's state is newer, and so is found first. And the thread that has not started: until then its state has
// the ids of the thread that makes it (init_threadstate() of Python/pystate.c, 3.11).
bool ProcessSampler::is_anothers(pid_t tid, int64_t interpreter_id) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const auto& slot) {
    return slot->in_python() && !slot->unbound && slot->probe->tid() == tid &&
           slot->interpreter_id == interpreter_id;
  });
}

bool ProcessSampler::add_thread(Domain& domain, RemoteAddress tstate, Nanoseconds now) {
  uint64_t interp = 0;
  uint64_t python_id = 0;
  uint64_t native_id = 0;
  if (!read_list(tstate + *layout_.thread.interp, interp) || interp != domain.interpreter.value) return false;
  if (!read_list(tstate + *layout_.thread.thread_id, python_id)) return false;
  if (layout_.thread.native_thread_id.present()) {
    read_list(tstate + *layout_.thread.native_thread_id, native_id);
    if (native_id == 0) return false;  // made, but its thread has not started
  }
  if (python_id == 0) return false;
  const TaskIds::Task task = task_ids_.find(python_id, native_id);
  if (task_ids_.process_gone()) process_gone_ = true;
  declined_[tstate.value].unknown = task.why == TaskIds::Why::unknown;
  pid_t tid = task.tid;
  if (tid == 0) return false;  // not started yet, or ending: the next refresh tells
  const bool unbound =
      layout_.traits.first_state_unbound && domain.id > 0 &&
      std::any_of(slots_.begin(), slots_.end(), [&](const auto& other) {
        return other->in_python() && other->python_id == python_id && other->interpreter_id != domain.id;
      });
  if (!unbound && is_anothers(tid, domain.id)) return false;
  if (Slot* resting = unbound ? nullptr : find_resting(tid, domain.id)) {
    resting->tstate = tstate;
    resting->interpreter = domain.interpreter;
    resting->domain = static_cast<size_t>(&domain - domains_.data());
    resting->python_id = python_id;
    by_tstate_[tstate.value] = resting;
    return true;
  }
  auto slot = std::make_unique<Slot>();
  slot->tstate = tstate;
  slot->unbound = unbound;
  uint64_t thread_id = python_id;  // of the thread that runs it
  if (const Slot* thread = unbound ? find_thread_of(*slot) : nullptr) {
    tid = thread->probe->tid();
    thread_id = thread->python_id;
  }
  slot->index = next_thread_++;
  slot->interpreter = domain.interpreter;
  slot->interpreter_id = domain.id;
  slot->python_id = python_id;
  slot->domain = static_cast<size_t>(&domain - domains_.data());
  slot->probe = std::make_unique<target::ThreadProbe>(config_.pid, tid);
  if (config_.rseq_cpu_offset) {
    slot->rseq_cpu = RemoteAddress(thread_id + static_cast<uint64_t>(*config_.rseq_cpu_offset));
    // A thread whose C library did not register (another libc beside, GLIBC_TUNABLES) says -1 or nothing
    // sensible.
    int32_t cpu = -1;
    if (!memory_.read_value(slot->rseq_cpu, cpu) || cpu < 0 || cpu > 8191) slot->rseq_cpu = {};
  }
  slot->last_time = now;
  const auto stat = slot->probe->schedstat();
  if (!stat) return false;  // a state whose thread is gone: left behind by a fork, or about to be freed
  slot->seen = *stat;
  ThreadRecord record;
  record.thread = slot->index;
  record.tid = tid;
  record.python_id = thread_id;
  record.interpreter = domain.id;
  record.time = now;
  log_.begin(record);
  by_tstate_[tstate.value] = slot.get();
  snapshot_.expect(slot->index, tstate, *layout_.thread.size);
  slots_.push_back(std::move(slot));
  return true;
}

void ProcessSampler::refresh_threads(Nanoseconds now) {
  last_refresh_ = now;
  refresh_wanted_ = false;
  if (!refresh_interpreters()) {
    refresh_wanted_ = true;
    list_whole_ = false;
    return;
  }
  for (auto& slot : slots_) {
    const auto domain = std::find_if(domains_.begin(), domains_.end(),
                                     [&](const Domain& d) { return d.id == slot->interpreter_id; });
    slot->domain = static_cast<size_t>(domain - domains_.begin());
    if (domain == domains_.end()) slot->alive = false;
  }
  if (lists_are_copied_) {
    for (const auto& slot : slots_) bring(slot->tstate);
    snapshot_.fetch_wanted();
  }
  size_t brought = 0;
  std::unordered_map<uint64_t, size_t> present;
  std::vector<std::pair<RemoteAddress, size_t>> fresh;
  list_whole_ = true;
  // Oldest first: a subinterpreter's first thread state is recognised by the threads that are known already.
  for (size_t d = domains_.size(); d-- > 0;) {
    RemoteAddress at = domains_[d].threads_head;
    size_t count = 0;
    // New states are put first: one behind a known one was missed by an earlier walk, which went astray on a
    // state that was freed meanwhile.
    bool any_known = false, any_new = false;
    while (at && is_plausible(at) && ++count < kMaxThreads && !present.contains(at.value)) {
      present[at.value] = d;
      Slot* slot = find_slot(at);
      if (lists_are_copied_ && slot == nullptr && ++brought <= kThreadsPerTurn) {
        bring(at);
        snapshot_.fetch_wanted();
      }
      uint64_t next = 0;
      if (brought > kThreadsPerTurn || !read_list(at + *layout_.thread.next, next)) {
        refresh_wanted_ = true;
        break;
      }
      if (slot != nullptr) {
        // The same address may be another thread by now.
        uint64_t python_id = 0;
        read_list(at + *layout_.thread.thread_id, python_id);
        if (python_id != slot->python_id) {
          lose_state(*slot);
          slot = nullptr;
        } else {
          slot->domain = d;
        }
      }
      any_known = any_known || slot != nullptr;
      if (slot == nullptr) {
        fresh.emplace_back(at, d);
        if (!declined_.contains(at.value)) {
          any_new = true;
          if (any_known) list_whole_ = false;
        }
      }
      at = RemoteAddress(next);
    }
    if (at || (any_new && !any_known)) list_whole_ = false;
  }
  std::erase_if(declined_, [&](const auto& state) { return !present.contains(state.first); });
  // Before others are added: the thread of a state that is gone may have one of those.
  if (!refresh_wanted_) {
    for (auto& slot : slots_) {
      if (slot->in_python() && !present.contains(slot->tstate.value)) lose_state(*slot);
    }
  }
  task_ids_.forget();
  const bool more_to_add = fresh.size() > kNewThreadsPerTurn && !config_.once;
  if (more_to_add) fresh.resize(kNewThreadsPerTurn);
  bool declined = false;
  for (const auto& [tstate, d] : fresh) {
    // A state whose thread is not up yet, or was left behind by a fork: asked again, but less and less often.
    if (add_thread(domains_[d], tstate, now)) {
      declined_.erase(tstate.value);
    } else {
      ++declined_[tstate.value].times;
      declined = true;
    }
  }
  refresh_wanted_ = refresh_wanted_ || more_to_add;
  if (declined) {
    refresh_pause_ = refresh_pause_ >= kRefreshEvery
                         ? kShortestRefreshPause
                         : std::clamp(refresh_pause_ * 2, kShortestRefreshPause, kSecond);
  } else {
    refresh_pause_ = kRefreshEvery;
  }
  drop_dead(now);
}

void ProcessSampler::drop_dead(Nanoseconds now) {
  for (auto& slot : slots_) {
    if (slot->alive) continue;
    log_.end(*slot, now);
    forget_state(*slot);
  }
  std::erase_if(slots_, [](const auto& slot) { return !slot->alive; });
  for (auto& slot : slots_) slot->nested = nullptr;
  if (domains_.size() < 2) return;
  std::unordered_map<pid_t, Slot*> newest;
  for (auto& slot : slots_) {
    if (!slot->tstate || (slot->unbound && !slot->stack_end)) continue;  // not known to be on that thread
    Slot*& top = newest[slot->probe->tid()];
    if (top == nullptr || top->interpreter_id < slot->interpreter_id) top = slot.get();
  }
  for (auto& slot : slots_) {
    Slot* top = newest[slot->probe->tid()];
    slot->nested = slot->tstate && top != slot.get() ? top : nullptr;
  }
}

// ---- who holds the GIL, and where
// -------------------------------------------------------------------------------------------------

size_t ProcessSampler::ranges_of(const Domain& domain, GilWords& words,
                                 std::span<memory::Range> ranges) const {
  size_t count = 0;
  auto add = [&](RemoteAddress address, auto& into) {
    ranges[count++] = {address, std::as_writable_bytes(std::span(&into, 1))};
  };
  if (domain.gil && layout_.gil_state.last_holder.present()) {
    add(domain.gil + *layout_.gil_state.locked, words.locked);
    add(domain.gil + *layout_.gil_state.last_holder, words.last);
  } else if (interpreter_.tstate_current) {
    add(interpreter_.tstate_current, words.last);
  }
  return count;
}

RemoteAddress ProcessSampler::holder(const Domain& domain) {
  GilWords words;
  std::array<memory::Range, GilWords::kRanges> ranges;
  const size_t count = ranges_of(domain, words, ranges);
  for (const memory::Range& range : std::span(ranges).first(count)) {
    const std::byte* bytes = snapshot_.find(range.address, range.into.size());
    if (bytes == nullptr) return {};
    std::memcpy(range.into.data(), bytes, range.into.size());
  }
  return words.holder();
}

// The same, asked of the target now.
RemoteAddress ProcessSampler::holder_now(const Domain& domain) {
  GilWords words;
  std::array<memory::Range, GilWords::kRanges> ranges;
  const size_t count = ranges_of(domain, words, ranges);
  return memory_.read(std::span(ranges).first(count)) == count ? words.holder() : RemoteAddress{};
}

bool ProcessSampler::lists_changed() {
  uint64_t head = 0;
  if (!snapshot_.load(interpreter_.interpreters_head, head)) return true;
  if (domains_.empty() || domains_.front().interpreter.value != head) return true;
  for (const Domain& domain : domains_) {
    if (!snapshot_.load(domain.threads_head_word, head) || domain.threads_head.value != head) return true;
  }
  return false;
}

// Who holds the GIL and which CPU everybody was on, in one small read: a wrong guess costs a whole copy and a
// move. False: not to be known this way.
bool ProcessSampler::scout(Domain& domain) {
  if (layout_.traits.free_threaded) return false;
  GilWords words;
  std::array<int32_t, kScouted> cpus;
  std::array<Slot*, kScouted> slots;
  std::array<memory::Range, GilWords::kRanges + kScouted> ranges;
  const size_t gil_words = ranges_of(domain, words, ranges);
  if (gil_words == 0) return false;
  size_t asked = 0;
  for (const auto& slot : slots_) {
    if (asked == kScouted) break;
    if (!slot->alive || !slot->rseq_cpu || slot->interpreter != domain.interpreter) continue;
    slots[asked] = slot.get();
    ranges[gil_words + asked] = {slot->rseq_cpu, std::as_writable_bytes(std::span(&cpus[asked], 1))};
    ++asked;
  }
  const size_t got = memory_.read(std::span(ranges).first(gil_words + asked));
  if (got < gil_words) return false;
  for (size_t i = 0; i < got - gil_words; ++i) {
    if (cpus[i] < 0) continue;
    slots[i]->last_cpu = cpus[i];
    slots[i]->cpu_known_at = tick_;
  }
  const RemoteAddress holder = words.holder();
  domain.runner = holder ? find_slot(holder) : nullptr;
  return true;
}

int ProcessSampler::cpu_of(Slot& slot) {
  if (slot.rseq_cpu) {
    int32_t cpu = -1;
    if (memory_.read_value(slot.rseq_cpu, cpu) && cpu >= 0) return cpu;
  }
  const auto stat = slot.probe->stat();
  return stat ? stat->cpu : -1;
}

GilState ProcessSampler::gil_state_of(const Domain& domain, const target::BlockedIn* in) const {
  if (layout_.traits.free_threaded) return GilState::not_applicable;
  if (in != nullptr && !in->running && in->number == kFutex && domain.gil &&
      layout_.gil_state.size.present()) {
    // take_gil() waits on the condition variable inside the GIL's own struct (Python/ceval_gil.c).
    const uint64_t futex = in->arguments[0];
    if (futex >= domain.gil.value && futex - domain.gil.value < *layout_.gil_state.size)
      return GilState::waits;
  }
  return GilState::none;
}

bool ProcessSampler::collecting(const Domain& domain) {
  if (!layout_.interpreter.gc_collecting.present()) return false;
  int32_t value = 0;
  return snapshot_.load(domain.interpreter + *layout_.interpreter.gc_collecting, value) && value == 1;
}

// ---- one stack
// -------------------------------------------------------------------------------------------------

// The first entry frame of a true chain has the outer CFrame's current_frame before it. Gives that frame when
// the chain is not true: an evaluation that is just entered (python::outer_frame).
std::optional<RemoteAddress> ProcessSampler::unpublished_evaluation(RemoteAddress state,
                                                                    const std::byte* thread,
                                                                    const python::WalkResult& walk) {
  const RemoteAddress outer = python::outer_frame(layout_, state, thread, snapshot_);
  // The outermost evaluation: nothing else to ask, so what was found stays, detached as it may be (3.12
  // clears a generator's `previous` while it is still current_frame).
  if (!outer) return {};
  for (size_t i = 0; i < walk.count; ++i) {
    if (!frames_[i].entry) continue;
    const RemoteAddress before = i + 1 < walk.count ? frames_[i + 1].frame : RemoteAddress{};
    if (before == outer) return {};
    break;
  }
  return outer;
}

ProcessSampler::Reading ProcessSampler::read_stack(Slot& slot) {
  Reading reading;
  locations_.clear();
  const ReadAs as(snapshot_, slot.index);
  codes_.begin_look(slot.interpreter, python::code_epoch(interpreter_, slot.interpreter, snapshot_));
  if (std::exchange(slot.codes_generation, codes_.generation()) != codes_.generation()) slot.codes.clear();
  ++counts_.reads;
  if (!slot.tstate) {
    reading.whole = true;
    return reading;
  }
  const std::byte* thread = snapshot_.find(slot.tstate, *layout_.thread.size);
  if (thread == nullptr) {
    reading.rejected = Rejected::unreadable;
    return reading;
  }
  if (load<uint64_t>(thread + *layout_.thread.interp) != slot.interpreter.value ||
      load<uint64_t>(thread + *layout_.thread.thread_id) != slot.python_id) {
    lose_state(slot);
    refresh_wanted_ = true;
    reading.whole = true;
    return reading;
  }
  if (slot.unbound && !is_on_its_stack(slot, thread)) {
    // Another thread runs it by now: what the kernel says of the one we know proves nothing.
    slot.alive = false;
    refresh_wanted_ = true;
    reading.rejected = Rejected::moved;
    return reading;
  }
  bool unreadable = false;
  const RemoteAddress top = python::top_frame(layout_, thread, snapshot_, unreadable);
  if (unreadable) {
    reading.rejected = Rejected::unreadable;
    return reading;
  }
  auto walk = python::walk_frames(layout_, top, snapshot_, std::span(frames_.get(), kMaxFrames));
  if (const auto outer = unpublished_evaluation(slot.tstate, thread, walk)) {
    walk = python::walk_frames(layout_, *outer, snapshot_, std::span(frames_.get(), kMaxFrames));
  }
  bool root_missing = false;
  switch (walk.end) {
    case WalkEnd::base:
    case WalkEnd::empty:
      break;
    case WalkEnd::detached:
      reading.quality = Quality::detached;
      locations_.push_back(CodeLocation{kCallersUnknown, 0});
      break;
    case WalkEnd::full:
      root_missing = true;
      break;
    case WalkEnd::unreadable:
      if (!snapshot_.exhausted()) {
        reading.rejected = Rejected::unreadable;
        return reading;
      }
      root_missing = true;
      break;
    case WalkEnd::broken:
      reading.rejected = Rejected::broken;
      return reading;
  }

  // Root first; entry frames are anchors for native frames and no frames of Python.
  const size_t count = walk.count;
  auto append = [&](size_t index) {
    const RawFrame& frame = frames_[index];
    if (native_) note_start(frame, index);
    if (!frame.code) return true;
    const CodeCache::Entry* entry = codes_.find(frame.code, snapshot_, slot.codes[count - 1 - index].second);
    if (entry == nullptr) return false;
    if (entry->number == kNotRead) {
      locations_.push_back(CodeLocation{kNotRead, 0});
      return true;
    }
    CodeLocation location;
    location.code = entry->number;
    const RemoteAddress bytecode =
        python::bytecode_of_frame(layout_, frame.frame, frame.code, entry->first_instruction, snapshot_);
    if (!bytecode) return false;
    location.instruction = python::instruction_offset(layout_.traits, bytecode, frame.instruction);
    locations_.push_back(location);
    return true;
  };
  const bool deep = count > kKeepLeaf + kKeepRoot + 64;
  const size_t root_from = deep ? count - kKeepRoot : 0;  // frames_[count-1] is the root
  slot.codes.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (!frames_[i].code || ((deep || root_missing) && i >= kKeepLeaf && (!deep || i < root_from))) continue;
    // Most of a stack is what it was at the last look.
    auto& [address, entry] = slot.codes[count - 1 - i];
    if (entry != nullptr && address == frames_[i].code) {
      codes_.want(*entry, snapshot_);
    } else {
      address = frames_[i].code;
      entry = codes_.want(address, snapshot_);
    }
  }
  snapshot_.fetch_wanted();
  bool known = true;
  if (root_missing) {
    locations_.push_back(CodeLocation{kFramesLeftOut, 0});
    reading.quality = Quality::cut;
    for (size_t i = std::min(count, kKeepLeaf); known && i-- > 0;) known = append(i);
  } else if (deep) {
    for (size_t i = count; known && i-- > root_from;) known = append(i);
    locations_.push_back(CodeLocation{kFramesLeftOut, static_cast<int32_t>(root_from - kKeepLeaf)});
    for (size_t i = kKeepLeaf; known && i-- > 0;) known = append(i);
    reading.quality = Quality::cut;
  } else {
    for (size_t i = count; known && i-- > 0;) known = append(i);
  }
  if (!known) {
    reading.rejected = Rejected::unreadable;
    return reading;
  }
  if (native_) find_anchors(slot.tstate, thread, count);
  reading.whole = true;
  if (slot.unbound && !layout_.thread.cframe.present() && reading.quality == Quality::ok)
    reading.quality = Quality::unproved;
  if (config_.on_stack) config_.on_stack(slot.index, std::span(frames_.get(), kMaxFrames).first(count));
  return reading;
}

bool ProcessSampler::still_unmoved(Slot& slot, const target::SchedStat& since) {
  const auto now = slot.probe->schedstat();
  return now && unmoved(since, *now);
}

bool ProcessSampler::by_event() const {
  return native_ && native_->in_use() == NativeSource::perf;
}

// Of a dump, which looks at nobody twice.
bool ProcessSampler::is_over(const Slot& slot) const {
  return config_.once && (slot.has_stack || slot.vain_looks >= kVainLooks);
}

ProcessSampler::Unseen ProcessSampler::unseen() const {
  const auto waits = [this](const auto& slot) { return slot->in_python() && !is_over(*slot); };
  Unseen unseen;
  unseen.threads = static_cast<size_t>(std::count_if(slots_.begin(), slots_.end(), waits));
  if (native_threads_) unseen.threads += native_threads_->unseen();
  unseen.list_whole = list_whole_;
  return unseen;
}

ProcessSampler::Stateless ProcessSampler::stateless() const {
  const uint32_t just_now = config_.once ? 1 : 2;
  Stateless stateless;
  for (const auto& [state, declined] : declined_) {
    if (declined.times <= just_now) continue;
    ++stateless.states;
    stateless.unknown += declined.unknown;
  }
  return stateless;
}

bool ProcessSampler::seen_lately(const Slot& slot, Nanoseconds now) const {
  if (is_over(slot)) return true;
  return native_ && slot.has_stack && now - slot.last_time < native_->soonest_again();
}

void ProcessSampler::read_holder(Domain& domain, Nanoseconds now) {
  if (layout_.traits.free_threaded) {
    // Nobody holds anything. Whoever was found running last comes first: the copy made with its stack serves
    // the others, and it is not asked whether it sleeps.
    Slot* slot = domain.runner;
    if (slot != nullptr && slot->alive && !slot->was_blocked && !native_ && !is_over(*slot) && on_its_cpu()) {
      Seen seen;
      read_standing_still(*slot, now, false, seen);
      return;
    }
    domain.runner = nullptr;
    if (!by_event()) snapshot_.capture();  // else the turn has
    return;
  }
  // Who holds the GIL may change until somebody is found standing still with it.
  for (int change = 0; change < kAttempts; ++change) {
    // Woken by an event, the thread that it caught stands still already: the turn's copy serves it and the
    // others.
    const bool caught = by_event() && change == 0;
    const bool scouted = !caught && on_its_cpu() && domain.threads > 1 && scout(domain);
    Slot* slot = caught ? nullptr : domain.runner;
    if (slot == nullptr || !slot->alive || (change > 0 && !scouted)) {
      if (!caught) snapshot_.capture();
      const RemoteAddress tstate = holder(domain);
      if (!tstate) return;
      slot = find_slot(tstate);
      if (slot == nullptr) {
        refresh_wanted_ = true;
        return;
      }
      domain.runner = slot;
    }
    // The others are looked at by the copy.
    if (seen_lately(*slot, now) || slot->event.kind == EventState::Kind::awake ||
        (slot->done && slot->event.kind == EventState::Kind::asleep))
      return;
    Seen seen;
    const bool settled =
        native_ ? read_with_native(*slot, now, true, seen) : read_running(*slot, now, true, seen);
    if (settled) {
      slot->done = true;
      return;
    }
  }
}

// While the GIL's holder stands still nobody else's Python frames can change: what was copied with its stack
// is proved with it, wherever the others run. False: it does not stand still any more.
bool ProcessSampler::read_beside_holder(Slot& slot, Domain& domain, Nanoseconds now) {
  const auto in = slot.probe->blocked_in();
  const uint64_t codes = codes_.resolved();
  const Reading reading = read_stack(slot);
  if (!slot.in_python()) return true;
  if (snapshot_.follow_ups() != domain.frozen_reads || codes_.resolved() != codes) {
    if (!domain.frozen->alive || !still_unmoved(*domain.frozen, domain.frozen_stat)) return false;
    domain.frozen_reads = snapshot_.follow_ups();
  }
  if (!reading.whole) {
    reject(slot, now, reading.rejected);
    return true;
  }
  Seen seen;
  seen.quality = reading.quality;
  if (in && !in->running) {
    seen.cpu_state = CpuState::blocked;
    seen.system_call = static_cast<int16_t>(in->number);
  } else {
    seen.cpu_state = awake_state(slot.first - slot.seen);
    if (slot.cpu_known_at == tick_) seen.cpu_number = static_cast<int16_t>(slot.last_cpu);
  }
  seen.gil_state = gil_state_of(domain, in ? &*in : nullptr);
  accept(slot, slot.first, now, seen, reading);
  return true;
}

void ProcessSampler::read_other(Slot& slot, Domain& domain, Nanoseconds now) {
  // Asked before the memory was copied; a thread that is off the CPU now and has the same count was off it
  // all the while.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) ++counts_.retried;
    const auto before =
        attempt == 0 && slot.first_valid ? std::optional(slot.first) : slot.probe->schedstat();
    if (!before) {
      slot.alive = false;
      refresh_wanted_ = true;
      return;
    }
    if (slot.has_stack && slot.was_blocked && unmoved(*before, slot.seen) && !before->off()) {
      did_not_run(slot, *before, now);
      return;
    }
    if (native_) {
      Seen seen;
      read_with_native(slot, now, false, seen);
      return;
    }
    if (attempt == 0 && slot.first_valid && !before->off() && domain.frozen != nullptr &&
        domain.frozen_look == snapshot_.look() && read_beside_holder(slot, domain, now)) {
      return;
    }
    const auto in = slot.probe->blocked_in();
    const bool blocked = in && !in->running;
    if (!blocked) {
      // Runs, or would: without the GIL its frames change only once it gets it.
      if (layout_.traits.free_threaded) domain.runner = &slot;
      Seen seen;
      (void)read_running(slot, now, false, seen);
      return;
    }
    // No copy in this turn yet: whoever came first has ended before it was made.
    if (attempt > 0 || !slot.first_valid || snapshot_.look() == last_turns_look_) snapshot_.capture();
    const Reading reading = read_stack(slot);
    if (!slot.in_python()) return;
    const auto after = slot.probe->schedstat();
    if (!after) {
      slot.alive = false;
      refresh_wanted_ = true;
      return;
    }
    if (!unmoved(*before, *after)) continue;
    if (!reading.whole) {
      reject(slot, now, reading.rejected);
      return;
    }
    Seen seen;
    seen.cpu_state = CpuState::blocked;
    seen.system_call = static_cast<int16_t>(in->number);
    seen.gil_state = gil_state_of(domain, &*in);
    seen.quality = reading.quality;
    if (after->off() && seen.quality == Quality::ok) seen.quality = Quality::unproved;
    accept(slot, *after, now, seen, reading);
    return;
  }
  reject(slot, now, Rejected::moved);
}

// ---- what was seen goes out
// ------------------------------------------------------------------------------------

void ProcessSampler::accept(Slot& slot, const target::SchedStat& stat, Nanoseconds now, const Seen& seen,
                            const Reading& reading) {
  LookRecord look = look_at(slot.index, now, slot.last_time);
  // CPU time used since the last look was used by something that ran.
  if (slot.nested == nullptr || slot.nested->stack.empty())
    slot.cpu_carried += static_cast<Nanoseconds>((stat - slot.seen).run_ns);
  look.cpu_number = seen.cpu_number;
  look.system_call = seen.system_call;
  look.cpu_state = seen.cpu_state;
  look.gil_state = seen.gil_state;
  look.quality = seen.quality;
  look.collecting = seen.collecting;
  NativeCopy::Parts native;
  if (native_) {
    look.native = native_->part();
    look.ran = native_->ran_between(slot.seen, stat);
    native = native_->parts_for(look.native);
  }
  if (seen.quality != Quality::unproved) codes_.keep_proved();
  log_.saw(slot, look, stat, tick_, &locations_, native);
  slot.done = true;
  ++counts_.samples;
  if (reading.quality == Quality::detached) ++counts_.detached;
  if (reading.quality == Quality::cut) ++counts_.cut;
  if (seen.quality == Quality::unproved) ++counts_.unproved;
}

void ProcessSampler::did_not_run(Slot& slot, const target::SchedStat& stat, Nanoseconds now) {
  counts_.samples += log_.did_not_run(slot, stat, tick_, now);
  slot.done = true;
  pause_idle(slot);
}

void ProcessSampler::reject(Slot& slot, Nanoseconds now, Rejected why) {
  log_.reject(slot, GilState::unknown, now, why);
  slot.done = true;
  ++counts_.samples;
  switch (why) {
    case Rejected::moved:
      ++counts_.moved;
      break;
    case Rejected::unreadable:
      ++counts_.unreadable;
      break;
    case Rejected::broken:
      ++counts_.broken;
      break;
    case Rejected::no:
      break;
  }
}

// ---- the turn
// --------------------------------------------------------------------------------------------------

// Whom the event of this turn has caught, until it was looked at.
ProcessSampler::Slot* ProcessSampler::caught() {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [](const auto& slot) {
    return slot->alive && !slot->done && slot->event.kind == EventState::Kind::preempted;
  });
  return found == slots_.end() ? nullptr : found->get();
}

void ProcessSampler::turn(Nanoseconds now, uint64_t round) {
  counts_.ticks = tick_ = round;
  last_turns_look_ = snapshot_.look();
  if (now - std::exchange(last_turn_, now) > kEpochsLast) codes_.forget_epochs();
  const auto due = [&] { return refresh_wanted_ || config_.once || now - last_refresh_ > refresh_pause_; };
  if (!by_event() && due()) refresh_threads(now);
  // The others' counts first: whoever is found blocked with the same count afterwards stood still while the
  // memory was copied.
  size_t asked = 0;
  size_t threads = slots_.size();
  for (auto& slot : slots_) {
    slot->first_valid = false;
    slot->event = {};
    slot->done = slot->next_tick > tick_ || seen_lately(*slot, now);
    if (slot->done) continue;
    if (native_) ask_event(*slot, now);
    if (slot->tstate || native_) continue;
    look_at_resting(*slot, now);
    slot->done = true;
  }
  for (size_t i = 0; i < threads; ++i) {
    Slot& slot = *slots_[(first_slot_ + i) % threads];
    if (slot.done || (domains_[slot.domain].runner == &slot && !by_event())) continue;
    if (slot.event.kind != EventState::Kind::preempted && ++asked > kThreadsPerTurn && !config_.once) {
      slot.done = true;  // in this turn
      continue;
    }
    if (const auto stat = slot.probe->schedstat()) {
      slot.first = *stat;
      slot.first_valid = true;
    } else {
      slot.alive = false;
      refresh_wanted_ = true;
    }
  }
  if (by_event()) {
    if (!due() && !slots_.empty() &&
        std::all_of(slots_.begin(), slots_.end(), [](const auto& slot) { return slot->done; })) {
      look_at_native_threads(now);  // no event has come, and nobody has gone to sleep since: nothing to copy
      return;
    }
    // Threads of Rust or C++ have thread states as short-lived as their calls into Python: whom the event
    // caught is in the list of this copy, or is not in Python.
    if (Slot* slot = caught()) {
      snapshot_.capture_for(slot->index, stack_of(*slot, slot->event.sp));
    } else {
      snapshot_.capture_for(Snapshot::kEverybody);
    }
    if (due() || lists_changed()) {
      lists_are_copied_ = true;
      refresh_threads(now);
      lists_are_copied_ = false;
      threads = slots_.size();
    }
  }
  for (auto& domain : domains_) domain.threads = 0;
  for (const auto& slot : slots_) ++domains_[slot->domain].threads;
  for (auto& domain : domains_) {
    domain.frozen = nullptr;
    read_holder(domain, now);
  }
  if (!domains_.empty() && lists_changed()) refresh_wanted_ = true;
  // By the copy that was made for it; the others have copies of their own.
  if (Slot* slot = by_event() ? caught() : nullptr) read_other(*slot, domains_[slot->domain], now);
  size_t next_first = first_slot_ + kThreadsPerTurn;
  for (size_t i = 0; i < threads; ++i) {
    Slot& slot = *slots_[(first_slot_ + i) % threads];
    if (slot.done || !slot.alive) continue;
    if (i > 0 && i % 8 == 0 && clock_now() - now > config_.longest_turn) {
      next_first = first_slot_ + i;
      break;
    }
    read_other(slot, domains_[slot.domain], now);
  }
  first_slot_ = threads > 0 ? next_first % threads : 0;
  if (std::any_of(slots_.begin(), slots_.end(), [](const auto& slot) { return !slot->alive; }))
    drop_dead(now);
  if (native_threads_) look_at_native_threads(now);
  counts_.follow_ups += snapshot_.follow_ups();
}

Counts ProcessSampler::counts() const {
  Counts counts = counts_;
  counts.lost = log_.lost();
  counts.migrations = workers_.migrations();
  counts.not_read = codes_.not_read();
  return counts;
}

void ProcessSampler::flush() {
  if (native_threads_) native_threads_->flush();
  for (auto& slot : slots_) log_.flush(*slot);
}

void ProcessSampler::finish(Nanoseconds now) {
  if (native_threads_) native_threads_->finish(now);
  for (auto& slot : slots_) slot->alive = false;
  drop_dead(now);
}

}  // namespace phlox::sampler
