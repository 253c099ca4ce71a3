#include "phlox/sampler/capture/python_threads.h"

#include <algorithm>

#include "phlox/process/maps.h"

namespace phlox::sampler {
namespace {

// Caps on the length of lists in the target's memory.
constexpr size_t kMaxInterpreters = 1024;
constexpr size_t kMaxThreads = 65536;
// The list of threads is read again at least this often, and whenever its head changes.
constexpr Nanoseconds kRefreshEvery = 10 * kSecond;
constexpr Nanoseconds kShortestPause = 2'000'000;
// Per turn: unknown thread states that are added to the copy one by one, and threads that are added.
constexpr size_t kBroughtAtOnce = 64;
constexpr size_t kNewAtOnce = 16;
// Or this fraction of all: with thousands of threads the walk takes longer than adding this few.
constexpr size_t kPartAtOnce = 64;
// The maximum number of thread states whose thread is looked up, to find those that use CPU time: 1 us each.
constexpr size_t kAskedAtOnce = 4096;

}  // namespace

PythonThreads::PythonThreads(const Config& config, const python::Interpreter& interpreter,
                             memory::RemoteMemory& memory, Snapshot& snapshot, SampleLog& log)
    : config_(config),
      interpreter_(interpreter),
      layout_(interpreter.layout),
      memory_(memory),
      snapshot_(snapshot),
      log_(log),
      task_ids_(config.pid, memory),
      busy_tasks_(config.pid),
      state_reader_(interpreter.layout, memory, snapshot) {}

PythonThread* PythonThreads::find(RemoteAddress tstate) {
  const auto found = by_tstate_.find(tstate.value);
  return found == by_tstate_.end() ? nullptr : found->second;
}

// Only for the list of threads: the state of a sampled thread is in the plan.
void PythonThreads::bring(RemoteAddress tstate) {
  snapshot_.want(tstate, *layout_.thread.size, /*in_passing=*/true);
}

template <class T>
bool PythonThreads::read(RemoteAddress from, T& into) {
  return from_copy_ ? snapshot_.load(from, into) : memory_.read_value(from, into);
}

bool PythonThreads::refresh_interpreters() {
  std::vector<Domain> domains;
  RemoteAddress at;
  if (!read(interpreter_.interpreters_head, at.value)) return false;
  while (at && domains.size() < kMaxInterpreters) {
    if (!is_plausible(at)) return false;
    if (std::any_of(domains.begin(), domains.end(), [&](const Domain& d) { return d.interpreter == at; }))
      break;
    Domain domain;
    domain.interpreter = at;
    domain.threads_head_word = at + *layout_.interpreter.threads_head;
    if (!read(domain.threads_head_word, domain.threads_head.value)) return false;
    if (layout_.interpreter.id.present()) read(at + *layout_.interpreter.id, domain.id);
    RemoteAddress gil = interpreter_.gil;
    if (layout_.traits.gil == python::GilOwner::interpreter && layout_.interpreter.ceval_gil.present()) {
      gil = {};
      read(at + *layout_.interpreter.ceval_gil, gil.value);
    }
    domain.gil = Gil(interpreter_, at, gil);
    domains.push_back(domain);
    if (!layout_.interpreter.next.present() || !read(at + *layout_.interpreter.next, at.value)) break;
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

// The thread on whose C stack the frames of a subinterpreter's first thread state are: tstate->cframe points
// into that stack while Python runs there (3.10 to 3.12), and otherwise into the thread state itself. glibc
// keeps a thread's struct pthread, whose address is its Python id, in the mapping of its stack
// (nptl/allocatestack.c). nullptr: none, or not known.
PythonThread* PythonThreads::find_thread_of(ThreadState& unbound) {
  uint64_t cframe = 0;
  if (!layout_.thread.cframe.present() ||
      !memory_.read_value(unbound.tstate + *layout_.thread.cframe, cframe) ||
      cframe - unbound.tstate.value < *layout_.thread.size) {
    return nullptr;
  }
  const auto maps = process::read_maps(config_.pid);
  if (!maps) return nullptr;
  const auto stack = std::find_if(maps->begin(), maps->end(),
                                  [&](const process::Mapping& m) { return m.holds(RemoteAddress(cframe)); });
  if (stack == maps->end()) return nullptr;
  for (auto& thread : threads_) {
    if (!thread->alive || thread->unbound) continue;
    const bool main_stack = stack->path == "[stack]" && thread->probe->tid() == config_.pid;
    if (!main_stack && !stack->holds(RemoteAddress(thread->python_id))) continue;
    unbound.stack_start = stack->start;
    unbound.stack_end = stack->end;
    return thread.get();
  }
  return nullptr;
}

PythonThread* PythonThreads::find_resting(pid_t tid, int64_t interpreter_id) {
  for (auto [at, end] = by_tid_.equal_range(tid); at != end; ++at) {
    PythonThread& thread = *at->second;
    if (thread.alive && !thread.tstate && thread.interpreter_id == interpreter_id) return &thread;
  }
  return nullptr;
}

// The thread is no longer found by its thread state.
void PythonThreads::forget_state(PythonThread& thread) {
  const auto found = by_tstate_.find(thread.tstate.value);
  if (found != by_tstate_.end() && found->second == &thread) by_tstate_.erase(found);
  for (auto& domain : domains_) {
    if (domain.runner == &thread) domain.runner = nullptr;
  }
}

void PythonThreads::forget_tid(const PythonThread& thread) {
  for (auto [at, end] = by_tid_.equal_range(thread.probe->tid()); at != end; ++at) {
    if (at->second != &thread) continue;
    by_tid_.erase(at);
    return;
  }
}

// Its thread state is gone. The thread itself may live on and get another.
void PythonThreads::lose_state(PythonThread& thread) {
  forget_state(thread);
  thread.tstate = {};
  if (thread.unbound || !thread.probe->schedstat()) {
    thread.alive = false;
    return;
  }
  if (config_.native) return;  // sampled as before: it has only native frames now
  log_.flush(thread);
  thread.has_stack = thread.was_blocked = false;
}

// A thread that did not survive a fork: its id, or its stack, belongs to another thread by now. That one's
// state is newer, and so is found first. Or a thread that has not started: until then its state has the ids
// of its creator (init_threadstate() of Python/pystate.c, 3.11).
bool PythonThreads::is_anothers(pid_t tid, int64_t interpreter_id) const {
  const auto [begin, end] = by_tid_.equal_range(tid);
  return std::any_of(begin, end, [&](const auto& row) {
    const PythonThread& thread = *row.second;
    return thread.in_python() && !thread.unbound && thread.interpreter_id == interpreter_id;
  });
}

// Whether it is an interpreter's first state, which need not belong to the thread whose ids it has: another
// interpreter's state has them too.
bool PythonThreads::is_unbound(uint64_t python_id, int64_t interpreter_id) const {
  return layout_.traits.first_state_unbound && interpreter_id > 0 &&
         std::any_of(threads_.begin(), threads_.end(), [&](const auto& other) {
           return other->in_python() && other->python_id == python_id &&
                  other->interpreter_id != interpreter_id;
         });
}

// The word in which the kernel keeps the thread's CPU up to date (rseq); none: there is no such word.
RemoteAddress PythonThreads::find_cpu_word(uint64_t thread_id) {
  if (!config_.rseq_cpu_offset) return {};
  const RemoteAddress word(thread_id + static_cast<uint64_t>(*config_.rseq_cpu_offset));
  // If the C library did not register the thread (another libc loaded, GLIBC_TUNABLES), the value is -1 or
  // meaningless.
  int32_t cpu = -1;
  return memory_.read_value(word, cpu) && cpu >= 0 && cpu <= 8191 ? word : RemoteAddress();
}

// `thread_id`: of the thread that runs it.
void PythonThreads::announce(const PythonThread& thread, uint64_t thread_id) {
  ThreadRecord record;
  record.thread = thread.index;
  record.tid = thread.probe->tid();
  record.python_id = thread_id;
  record.interpreter = thread.interpreter_id;
  record.time = thread.last_time;
  record.used = static_cast<Nanoseconds>(thread.seen.run_ns);
  log_.begin(record);
}

bool PythonThreads::add(const FreshState& state, Nanoseconds now) {
  const Domain& domain = domains_[state.domain];
  const RemoteAddress tstate = state.at;
  const uint64_t python_id = state.words.python_id, native_id = state.words.native_id;
  if (state.words.interp != domain.interpreter.value || python_id == 0) return false;
  // The state exists, but its thread has not started.
  if (layout_.thread.native_thread_id.present() && native_id == 0) return false;
  const TaskIds::Task task = task_ids_.find(python_id, native_id);
  if (task_ids_.process_gone()) process_gone_ = true;
  declined_[tstate.value].unknown = task.why == TaskIds::Why::unknown;
  pid_t tid = task.tid;
  if (tid == 0) return false;  // not started yet, or ending: the next refresh decides
  const bool unbound = is_unbound(python_id, domain.id);
  if (!unbound && is_anothers(tid, domain.id)) return false;
  if (PythonThread* resting = unbound ? nullptr : find_resting(tid, domain.id)) {
    resting->tstate = tstate;
    resting->interpreter = domain.interpreter;
    resting->domain = state.domain;
    resting->python_id = python_id;
    by_tstate_[tstate.value] = resting;
    return true;
  }
  auto thread = std::make_unique<PythonThread>();
  thread->tstate = tstate;
  thread->unbound = unbound;
  uint64_t thread_id = python_id;  // of the thread that runs it
  if (const PythonThread* runs_it = unbound ? find_thread_of(*thread) : nullptr) {
    tid = runs_it->probe->tid();
    thread_id = runs_it->python_id;
  }
  thread->index = next_thread_++;
  thread->interpreter = domain.interpreter;
  thread->interpreter_id = domain.id;
  thread->python_id = python_id;
  thread->domain = state.domain;
  thread->probe = std::make_unique<process::ThreadProbe>(config_.pid, tid);
  thread->rseq_cpu = find_cpu_word(thread_id);
  thread->last_time = now;
  const auto stat = thread->probe->schedstat();
  if (const auto first = tid == config_.pid ? thread->probe->stat() : std::nullopt;
      first && first->has_ended())
    return false;
  if (!stat) return false;  // the thread is gone: the state is left over from a fork, or about to be freed
  // CPU time that a fork used before its first sample is charged to that sample, as between two samples.
  if (config_.birth && tid == config_.pid && thread->index == 1)
    thread->last_time = *config_.birth;
  else
    thread->seen = *stat;
  announce(*thread, thread_id);
  by_tstate_[tstate.value] = thread.get();
  by_tid_.emplace(tid, thread.get());
  snapshot_.expect(thread->index, tstate, *layout_.thread.size);
  threads_.push_back(std::move(thread));
  return true;
}

// New states are put first. One behind a known state was missed by an earlier walk, which went astray on a
// state that was freed meanwhile.
void PythonThreads::walk_domain(size_t d, Walk& walk) {
  RemoteAddress at = domains_[d].threads_head;
  size_t count = 0;
  bool any_known = false, any_new = false;
  while (at && is_plausible(at) && ++count < kMaxThreads && !walk.present.contains(at.value)) {
    walk.present[at.value] = d;
    PythonThread* thread = find(at);
    if (from_copy_ && thread == nullptr && ++walk.brought <= kBroughtAtOnce) {
      bring(at);
      snapshot_.fetch_wanted();
    }
    StateWords words;
    if (walk.brought > kBroughtAtOnce || !state_reader_.read(at, from_copy_, words)) {
      wanted_ = true;
      break;
    }
    listed_.push_back(at);
    if (thread != nullptr) {
      // The address may belong to another thread by now.
      if (words.python_id != thread->python_id) {
        lose_state(*thread);
        thread = nullptr;
      } else {
        thread->domain = d;
      }
    }
    any_known = any_known || thread != nullptr;
    if (thread == nullptr) {
      walk.fresh.push_back({at, d, words});
      if (!declined_.contains(at.value)) {
        any_new = true;
        if (any_known) whole_ = false;
      }
    }
    at = words.next;
  }
  if (at || (any_new && !any_known)) whole_ = false;
}

void PythonThreads::note_busy() {
  const std::unordered_set<pid_t> busy = busy_tasks_.busy();
  for (auto& thread : threads_) thread->uses_cpu = busy.contains(thread->probe->tid());
}

// The thread states whose threads use CPU time, in or outside of Python. This takes a read for each, so only
// if such a thread has no entry yet.
std::unordered_set<uint64_t> PythonThreads::busy_states(const std::vector<FreshState>& fresh) {
  std::unordered_set<pid_t> busy = busy_tasks_.busy();
  std::erase_if(busy, [this](pid_t tid) { return has(tid); });
  std::unordered_set<uint64_t> states;
  if (busy.empty()) return states;
  size_t asked = 0;
  for (const FreshState& state : fresh) {
    if (declined_.contains(state.at.value)) continue;
    if (++asked > kAskedAtOnce) break;
    const TaskIds::Task task = task_ids_.find(state.words.python_id, state.words.native_id);
    if (busy.contains(task.tid)) states.insert(state.at.value);
    if (states.size() == busy.size()) break;
  }
  return states;
}

// Among thousands of threads, one that computes must not be added last, and states without a thread must not
// delay others. The order of the domains stays if a subinterpreter's first thread state is recognised by the
// threads that are already known.
void PythonThreads::running_first(std::vector<FreshState>& fresh) {
  std::vector<RemoteAddress> holders;
  for (const Domain& domain : domains_)
    holders.push_back(layout_.traits.free_threaded ? RemoteAddress() : domain.gil.holder_now(memory_));
  const std::unordered_set<uint64_t> busy = busy_states(fresh);
  const auto rank = [&](const FreshState& state) {
    if (layout_.traits.free_threaded ? state.words.active : state.at == holders[state.domain]) return 0;
    if (declined_.contains(state.at.value)) return 3;
    return busy.contains(state.at.value) ? 1 : 2;
  };
  std::stable_sort(fresh.begin(), fresh.end(), [&](const FreshState& a, const FreshState& b) {
    if (layout_.traits.first_state_unbound && a.domain != b.domain) return a.domain > b.domain;
    return rank(a) < rank(b);
  });
}

void PythonThreads::add_fresh(Walk& walk, Nanoseconds now) {
  const size_t at_once = std::max(kNewAtOnce, walk.present.size() / kPartAtOnce);
  const bool more_to_add = walk.fresh.size() > at_once && !config_.once;
  waiting_ = 0;
  if (more_to_add) {
    running_first(walk.fresh);
    waiting_ = static_cast<size_t>(
        std::count_if(walk.fresh.begin() + static_cast<std::ptrdiff_t>(at_once), walk.fresh.end(),
                      [this](const FreshState& state) { return !declined_.contains(state.at.value); }));
    walk.fresh.resize(at_once);
  }
  bool declined = false;
  for (const FreshState& state : walk.fresh) {
    // A state whose thread is not up yet, or was left behind by a fork: checked again, but less and less
    // often.
    if (add(state, now)) {
      declined_.erase(state.at.value);
    } else {
      ++declined_[state.at.value].times;
      declined = true;
    }
  }
  wanted_ = wanted_ || more_to_add;
  if (!declined) {
    pause_ = kRefreshEvery;
  } else {
    pause_ = pause_ >= kRefreshEvery ? kShortestPause : std::clamp(pause_ * 2, kShortestPause, kSecond);
  }
}

void PythonThreads::refresh(Nanoseconds now, From from) {
  last_refresh_ = now;
  wanted_ = false;
  from_copy_ = from == From::copy;
  if (!refresh_interpreters()) {
    wanted_ = true;
    whole_ = false;
    return;
  }
  for (auto& thread : threads_) {
    const auto domain = std::find_if(domains_.begin(), domains_.end(),
                                     [&](const Domain& d) { return d.id == thread->interpreter_id; });
    thread->domain = static_cast<size_t>(domain - domains_.begin());
    if (domain == domains_.end()) thread->alive = false;
  }
  if (from_copy_) {
    for (const auto& thread : threads_) bring(thread->tstate);
    snapshot_.fetch_wanted();
  }
  whole_ = true;
  Walk walk;
  if (!from_copy_) state_reader_.read_ahead(listed_);
  listed_.clear();
  // Oldest first: a subinterpreter's first thread state is recognised by the threads that are already known.
  for (size_t d = domains_.size(); d-- > 0;) walk_domain(d, walk);
  state_reader_.forget();
  std::erase_if(declined_, [&](const auto& state) { return !walk.present.contains(state.first); });
  // Before others are added: the thread of a vanished state may have one of those.
  if (!wanted_) {
    for (auto& thread : threads_) {
      if (thread->in_python() && !walk.present.contains(thread->tstate.value)) lose_state(*thread);
    }
  }
  task_ids_.forget();
  add_fresh(walk, now);
  drop_dead(now);
}

void PythonThreads::drop_dead(Nanoseconds now) {
  for (auto& thread : threads_) {
    if (thread->alive) continue;
    log_.end(*thread, now);
    forget_state(*thread);
    forget_tid(*thread);
  }
  std::erase_if(threads_, [](const auto& thread) { return !thread->alive; });
  note_nested();
}

void PythonThreads::note_nested() {
  for (auto& thread : threads_) thread->nested = nullptr;
  if (domains_.size() < 2) return;
  std::unordered_map<pid_t, PythonThread*> newest;
  for (auto& thread : threads_) {
    if (!thread->tstate || (thread->unbound && !thread->stack_end))
      continue;  // not known to be on that thread
    PythonThread*& top = newest[thread->probe->tid()];
    if (top == nullptr || top->interpreter_id < thread->interpreter_id) top = thread.get();
  }
  for (auto& thread : threads_) {
    PythonThread* top = newest[thread->probe->tid()];
    thread->nested = thread->tstate && top != thread.get() ? top : nullptr;
  }
}

void PythonThreads::end_all(Nanoseconds now) {
  for (auto& thread : threads_) thread->alive = false;
  drop_dead(now);
}

bool PythonThreads::has(pid_t tid) const {
  return by_tid_.contains(tid);
}

bool PythonThreads::changed() {
  uint64_t head = 0;
  if (!snapshot_.load(interpreter_.interpreters_head, head)) return true;
  if (domains_.empty() || domains_.front().interpreter.value != head) return true;
  for (const Domain& domain : domains_) {
    if (!snapshot_.load(domain.threads_head_word, head) || domain.threads_head.value != head) return true;
  }
  return false;
}

Stateless PythonThreads::stateless() const {
  const uint32_t just_now = config_.once ? 1 : 2;
  Stateless stateless;
  stateless.waiting = waiting_;
  for (const auto& [state, declined] : declined_) {
    if (declined.times <= just_now) continue;
    ++stateless.states;
    stateless.unknown += declined.unknown;
  }
  return stateless;
}

}  // namespace phlox::sampler
