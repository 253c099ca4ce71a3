// The threads of a process that run Python: its interpreters and their thread states, the kernel thread of
// each, and when to read those lists again. A thread keeps its entry while thread states come and go. Does
// not know what a thread does. Called by the worker that holds the turn lock.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/interpreter.h"
#include "phlox/sampler/capture/busy_tasks.h"
#include "phlox/sampler/capture/gil.h"
#include "phlox/sampler/capture/observed_thread.h"
#include "phlox/sampler/capture/snapshot.h"
#include "phlox/sampler/capture/stack_reader.h"
#include "phlox/sampler/capture/state_words.h"
#include "phlox/sampler/capture/task_ids.h"
#include "phlox/sampler/observe/counts.h"

namespace phlox::sampler {

struct PythonThread : ObservedThread, ThreadState {
  // The newest interpreter's state on the same thread, called from this one: the CPU time belongs to it.
  PythonThread* nested = nullptr;
  size_t domain = 0;
  RemoteAddress rseq_cpu;
  process::SchedStat first;  // read before the memory of this turn
  bool first_valid = false;
  int last_cpu = -1;
  uint64_t cpu_known_at = 0;  // turn in which last_cpu was read
  bool done = false;          // in this turn
  bool uses_cpu = false;      // by the kernel's accounts; noted of many threads only
  bool in_python() const { return alive && tstate; }
};

// Threads that share one GIL; a free-threaded interpreter's have none.
struct Domain {
  RemoteAddress interpreter;
  int64_t id = 0;
  RemoteAddress threads_head_word;
  RemoteAddress threads_head;
  Gil gil;
  PythonThread* runner = nullptr;  // the last holder
  size_t threads = 0;
  // The thread that held the GIL and did not run in this turn, and the copy of the memory for which that
  // holds.
  PythonThread* frozen = nullptr;
  process::SchedStat frozen_stat;
  uint64_t frozen_sample = 0;
  unsigned frozen_reads = 0;  // follow-ups of that copy that are proved
};

class PythonThreads {
 public:
  struct Config {
    pid_t pid = 0;
    // The offset of the C library's rseq.cpu_id from the thread pointer; none: read /proc.
    std::optional<int64_t> rseq_cpu_offset;
    bool native = false;               // threads without a thread state are sampled all the same
    bool once = false;                 // all threads are added at the first refresh
    std::optional<Nanoseconds> birth;  // Program::birth
  };

  PythonThreads(const Config& config, const python::Interpreter& interpreter, memory::RemoteMemory& memory,
                Snapshot& snapshot, SampleLog& log);

  // Whether to read the lists again, because they may have changed.
  bool due(Nanoseconds now) const { return wanted_ || config_.once || now - last_refresh_ > pause_; }
  void want_refresh() { wanted_ = true; }
  // Whether the heads of the lists, in the copy of the memory, differ from those that were read.
  bool changed();
  // The source of the lists.
  enum class From { target, copy };
  void refresh(Nanoseconds now, From from);

  std::vector<std::unique_ptr<PythonThread>>& all() { return threads_; }
  const std::vector<std::unique_ptr<PythonThread>>& all() const { return threads_; }
  std::vector<Domain>& domains() { return domains_; }
  PythonThread* find(RemoteAddress tstate);
  bool has(pid_t tid) const;
  // Notes which threads use CPU time.
  void note_busy();
  // No thread was found for it in the last refresh.
  bool was_declined(RemoteAddress tstate) const { return declined_.contains(tstate.value); }

  // Its thread state is gone. The thread itself may live on, and get another one.
  void lose_state(PythonThread& thread);
  // It is gone, or will be soon: drop_dead() removes it.
  void has_ended(PythonThread& thread) {
    thread.alive = false;
    wanted_ = true;
  }
  void drop_dead(Nanoseconds now);
  void end_all(Nanoseconds now);

  // All threads at the beginning of the refresh are known.
  bool is_whole() const { return whole_; }
  bool process_gone() const { return process_gone_; }
  Stateless stateless() const;

 private:
  // States without a thread: how often each was checked, and why there is none.
  struct Declined {
    uint32_t times = 0;
    bool unknown = false;
  };
  struct FreshState {
    RemoteAddress at;
    size_t domain = 0;
    StateWords words;
  };
  // A walk along all lists of thread states.
  struct Walk {
    std::unordered_map<uint64_t, size_t> present;  // domain by thread state
    std::vector<FreshState> fresh;                 // not known yet
    size_t brought = 0;                            // into the copy
  };

  template <class T>
  bool read(RemoteAddress from, T& into);
  void bring(RemoteAddress tstate);
  bool refresh_interpreters();
  void walk_domain(size_t domain, Walk& walk);
  void running_first(std::vector<FreshState>& fresh);
  std::unordered_set<uint64_t> busy_states(const std::vector<FreshState>& fresh);
  void add_fresh(Walk& walk, Nanoseconds now);
  bool add(const FreshState& state, Nanoseconds now);
  PythonThread* find_thread_of(ThreadState& unbound);
  PythonThread* find_resting(pid_t tid, int64_t interpreter_id);
  bool is_anothers(pid_t tid, int64_t interpreter_id) const;
  bool is_unbound(uint64_t python_id, int64_t interpreter_id) const;
  RemoteAddress find_cpu_word(uint64_t thread_id);
  void announce(const PythonThread& thread, uint64_t thread_id);
  void forget_state(PythonThread& thread);
  void forget_tid(const PythonThread& thread);
  void note_nested();

  Config config_;
  const python::Interpreter& interpreter_;
  const python::Layout& layout_;
  memory::RemoteMemory& memory_;
  Snapshot& snapshot_;
  SampleLog& log_;
  TaskIds task_ids_;
  BusyTasks busy_tasks_;
  StateReader state_reader_;
  std::vector<RemoteAddress> listed_;  // thread states of the last walk
  std::vector<Domain> domains_;
  std::vector<std::unique_ptr<PythonThread>> threads_;
  std::unordered_map<uint64_t, PythonThread*> by_tstate_;
  std::unordered_multimap<pid_t, PythonThread*> by_tid_;
  std::unordered_map<uint64_t, Declined> declined_;
  uint32_t next_thread_ = 1;
  Nanoseconds last_refresh_ = 0;
  Nanoseconds pause_ = 0;
  bool wanted_ = true;
  bool whole_ = false;
  bool from_copy_ = false;
  bool process_gone_ = false;
  size_t waiting_ = 0;  // Stateless::waiting
};

}  // namespace phlox::sampler
