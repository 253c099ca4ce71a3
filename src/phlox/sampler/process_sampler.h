// One turn after the other on the CPU of the thread that is read. While this thread runs there, that one
// cannot, so what it reads stands still; the proof is the kernel's count of times scheduled in
// (docs/decisions/0001-reading-without-stopping.md). Made and ended by the sampler thread, which may be of
// the real-time class; everything else is called by it or by one of the threads beside it (workers.h), and by
// whoever of them holds the turn lock. pin() alone any of them may call without it. After construction it
// waits for nothing but the clock, and the ring to the consumer is the only way out of it. Reads the target,
// writes nothing into it.
#pragma once

#include <sys/types.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/frame_walk.h"
#include "phlox/python/interpreter.h"
#include "phlox/sampler/code_cache.h"
#include "phlox/sampler/look_log.h"
#include "phlox/sampler/native_capture.h"
#include "phlox/sampler/perf_source.h"
#include "phlox/sampler/ring.h"
#include "phlox/sampler/snapshot.h"
#include "phlox/sampler/task_ids.h"
#include "phlox/sampler/way.h"
#include "phlox/target/thread_probe.h"
#include "phlox/target/thread_stop.h"

namespace phlox::sampler {

class NativeHalf;
class NativeThreads;

struct Counts : target::StopCounts {
  // Rounds: turns, of which each of several workers has at most one in a round. That often a running thread
  // is looked at.
  uint64_t ticks = 0;
  uint64_t samples = 0, retried = 0, detached = 0, cut = 0, unproved = 0, lost = 0;
  uint64_t moved = 0, unreadable = 0, broken = 0;
  uint64_t cpu_refused = 0;    // looks at a thread on a CPU that we may not use
  uint64_t stopped_alone = 0;  // looks at a thread stopped for its Python half alone
  uint64_t migrations = 0;     // times this thread followed the target to another CPU
  uint64_t follow_ups = 0;
  uint64_t reads = 0;     // stacks read anew
  uint64_t not_read = 0;  // frames without a name: more new ones at once than are kept
};

class ProcessSampler {
 public:
  struct Config {
    pid_t pid = 0;
    Way way = Way::automatic;
    // Where the C library keeps rseq.cpu_id, from the thread pointer; none: ask /proc.
    std::optional<int64_t> rseq_cpu_offset;
    // Called for each whole stack (leaf first) while its thread still stands still; again when the proof
    // fails and it is read anew. The thread's number as in ThreadRecord.
    std::function<void(uint32_t thread, std::span<const python::RawFrame>)> on_stack;
    // Native frames too, and threads without Python; how running threads are held for it.
    std::optional<NativeSource> native;
    // Between two looks, 0: there is one look only; and whether our class is of real time. For native frames.
    Nanoseconds interval = 0;
    bool real_time = false;
    // A turn takes no longer than this from the CPU that it borrows; who was not looked at is first in the
    // next one.
    Nanoseconds longest_turn = 200'000;
    // A dump: everybody is looked at, once, in as many turns as that takes (unseen()).
    bool once = false;
  };

  ProcessSampler(const Config& config, const python::Interpreter& interpreter, memory::RemoteMemory& memory,
                 Ring& ring, Workers& workers);
  ~ProcessSampler();
  ProcessSampler(const ProcessSampler&) = delete;
  ProcessSampler& operator=(const ProcessSampler&) = delete;

  // Looks once at every thread. `now`: CLOCK_MONOTONIC at the wake-up. `round`: Workers::begin_turn().
  void turn(Nanoseconds now, uint64_t round);
  // Sends what is still held back, and ends every thread.
  void finish(Nanoseconds now);
  // Sends what is held back, at least four times a second.
  void flush();

  Counts counts() const;
  // What holds running threads for their native half; none: native frames are not asked for.
  std::optional<NativeSource> native_source() const;
  EventNumbers native_events() const;
  size_t native_threads() const;
  // Sleeps, without the turn lock, until a perf event of a thread wakes this worker for its native half, or
  // about an interval.
  Woken wait_for_event(Worker& worker, Nanoseconds interval, TurnLock& turn_lock);
  // Since the last turn, whoever's it was.
  Nanoseconds rested(Nanoseconds now) const { return now - last_turn_; }
  Way way() const { return config_.way; }
  bool process_gone() const { return process_gone_; }
  // Thread states of Python that have no thread of this process, as far as that can be known: one that has
  // not started yet, or has just ended, or was left behind by a fork. Only those asked for several times.
  struct Stateless {
    size_t states = 0;
    size_t unknown = 0;  // of them: may have one, and nothing says which
  };
  Stateless stateless() const;
  // Config::once: what there still is to look at. Who was rejected kVainLooks times is not looked at again.
  static constexpr uint32_t kVainLooks = 3;
  struct Unseen {
    size_t threads = 0;
    bool list_whole = false;  // whoever was there as the first turn began is known
    bool any() const { return threads > 0 || !list_whole; }
  };
  Unseen unseen() const;
  bool schedstat_off() const { return schedstat_off_; }
  size_t threads() const { return slots_.size(); }

 private:
  // At one stack before it is rejected: with 4, 99.2 to 100 % were accepted in the hard case.
  static constexpr int kAttempts = 4;

  struct Slot : ObservedThread {
    // None: the thread has none now. Threads of Rust or C++ make one for each call into Python, and are the
    // same thread all the while.
    RemoteAddress tstate;
    RemoteAddress interpreter;
    int64_t interpreter_id = 0;
    uint64_t python_id = 0;  // as the thread state has it
    // A thread state that is bound to no thread (Traits::first_state_unbound): it stands for whichever one
    // runs the subinterpreter, on whose C stack its frames hang. An empty stack: not known, nothing may hang
    // on any.
    bool unbound = false;
    RemoteAddress stack_start, stack_end;
    // The newest interpreter's state on the same thread, called by way of this one: CPU time is its.
    Slot* nested = nullptr;
    size_t domain = 0;
    RemoteAddress rseq_cpu;
    target::SchedStat first;  // read before the memory of this turn
    bool first_valid = false;
    int last_cpu = -1;
    uint64_t cpu_known_at = 0;                                       // turn in which last_cpu was scouted
    bool done = false;                                               // in this turn
    std::vector<std::pair<RemoteAddress, CodeCache::Entry*>> codes;  // root first, of the stack last read
    uint64_t codes_generation = 0;                                   // of the cache that they lie in
    bool in_python() const { return alive && tstate; }
  };

  // Threads that share one GIL; a free-threaded interpreter's have none.
  struct Domain {
    RemoteAddress interpreter;
    int64_t id = 0;
    RemoteAddress threads_head_word;
    RemoteAddress threads_head;
    RemoteAddress gil;       // struct of last_holder and locked
    Slot* runner = nullptr;  // who held it last
    size_t threads = 0;
    // Who was found standing still with the GIL in this turn, as of which copy of the memory.
    Slot* frozen = nullptr;
    target::SchedStat frozen_stat;
    uint64_t frozen_look = 0;
    unsigned frozen_reads = 0;  // follow-ups of that copy that are proved
  };

  struct Reading {
    bool whole = false;  // there is a stack, or rightly none
    profile::Quality quality = profile::Quality::ok;
    Rejected rejected = Rejected::no;
  };

  struct Seen {
    profile::CpuState cpu_state = profile::CpuState::unknown;
    profile::GilState gil_state = profile::GilState::unknown;
    profile::Quality quality = profile::Quality::ok;
    Rejected rejected = Rejected::no;
    int16_t system_call = -1;
    int16_t cpu_number = -1;
    bool collecting = false;
  };

  void refresh_threads(Nanoseconds now);
  bool refresh_interpreters();
  bool add_thread(Domain& domain, RemoteAddress tstate, Nanoseconds now);
  Slot* find_resting(pid_t tid, int64_t interpreter_id);
  void forget_state(Slot& slot);
  void lose_state(Slot& slot);
  void pause_idle(Slot& slot);
  void look_at_resting(Slot& slot, Nanoseconds now);
  void bring(RemoteAddress tstate);
  template <class T>
  bool read_list(RemoteAddress from, T& into);
  Slot* find_thread_of(Slot& unbound);
  bool is_on_its_stack(const Slot& slot, const std::byte* thread) const;
  bool is_anothers(pid_t tid, int64_t interpreter_id) const;
  Slot* find_slot(RemoteAddress tstate);
  void drop_dead(Nanoseconds now);

  // The words that say who holds a GIL; where the layout has no GIL, the current thread state alone does.
  struct GilWords {
    static constexpr size_t kRanges = 2;
    int32_t locked = 1;
    uint64_t last = 0;
    RemoteAddress holder() const { return locked > 0 ? RemoteAddress(last) : RemoteAddress{}; }
  };
  // Where they lie, each to be read into `words`; how many of `ranges`, 0: not known.
  size_t ranges_of(const Domain& domain, GilWords& words, std::span<memory::Range> ranges) const;
  // The thread state that holds the domain's GIL; none: nobody does.
  RemoteAddress holder(const Domain& domain);
  RemoteAddress holder_now(const Domain& domain);
  bool lists_changed();
  bool scout(Domain& domain);
  void read_holder(Domain& domain, Nanoseconds now);
  void read_other(Slot& slot, Domain& domain, Nanoseconds now);
  bool read_beside_holder(Slot& slot, Domain& domain, Nanoseconds now);
  bool read_standing_still(Slot& slot, Nanoseconds now, bool holds, Seen& seen);
  bool read_from_elsewhere(Slot& slot, Nanoseconds now, bool holds, Seen& seen);
  bool read_running(Slot& slot, Nanoseconds now, bool holds, Seen& seen);
  bool on_its_cpu() const { return config_.way == Way::automatic || config_.way == Way::same_cpu; }
  void has_ended(Slot& slot);
  bool read_with_native(Slot& slot, Nanoseconds now, bool holds, Seen& seen);
  bool by_event() const;
  Slot* caught();
  bool seen_lately(const Slot& slot, Nanoseconds now) const;
  bool is_over(const Slot& slot) const;
  void ask_event(Slot& slot, Nanoseconds now);
  ByteRange stack_of(Slot& slot, RemoteAddress sp);
  void note_start(const python::RawFrame& frame, size_t raw);
  void find_anchors(RemoteAddress state, const std::byte* thread, size_t frames);
  void look_at_native_threads(Nanoseconds now);
  std::optional<RemoteAddress> unpublished_evaluation(RemoteAddress state, const std::byte* thread,
                                                      const python::WalkResult& walk);
  Reading read_stack(Slot& slot);
  bool still_unmoved(Slot& slot, const target::SchedStat& since);
  int cpu_of(Slot& slot);
  profile::GilState gil_state_of(const Domain& domain, const target::BlockedIn* in) const;
  bool collecting(const Domain& domain);
  void accept(Slot& slot, const target::SchedStat& now_stat, Nanoseconds now, const Seen& seen,
              const Reading& reading);
  void did_not_run(Slot& slot, const target::SchedStat& stat, Nanoseconds now);
  void reject(Slot& slot, Nanoseconds now, Rejected why);

  Config config_;
  python::Interpreter interpreter_;
  const python::Layout& layout_;
  memory::RemoteMemory& memory_;
  Workers& workers_;
  LookLog log_;
  Snapshot snapshot_;
  CodeCache codes_;
  // From calloc: pages that no stack reaches are never touched, which would cost a dump most of its time.
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<python::RawFrame[], Free> frames_;
  std::vector<CodeLocation> locations_;  // the stack being read, root first
  std::vector<Domain> domains_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::unordered_map<uint64_t, Slot*> by_tstate_;
  // States of no thread: how often one was asked for, and why there is none.
  struct Declined {
    uint32_t times = 0;
    bool unknown = false;
  };
  std::unordered_map<uint64_t, Declined> declined_;
  TaskIds task_ids_;
  uint32_t next_thread_ = 1;
  size_t first_slot_ = 0;         // where the next turn begins, when a turn cannot look at everybody
  uint64_t tick_ = 0;             // the round
  uint64_t last_turns_look_ = 0;  // the copy of the memory that the turn before left
  Nanoseconds last_refresh_ = 0;
  Nanoseconds last_turn_ = 0;
  Nanoseconds refresh_pause_ = 0;
  bool refresh_wanted_ = true;
  bool list_whole_ = false;        // as Unseen's
  bool lists_are_copied_ = false;  // the lists of threads are read from the copy of the memory
  bool process_gone_ = false;
  bool schedstat_off_ = false;
  Counts counts_;
  std::unique_ptr<NativeHalf> native_;  // none: native frames are not asked for
  std::unique_ptr<NativeThreads> native_threads_;
  std::vector<uint64_t> links_, anchors_;
};

}  // namespace phlox::sampler
