// Our sampling threads, and their CPUs. There is one if samples move from CPU to CPU with the target; with
// perf events there is one on each CPU where an event may catch a thread, because moving there costs more
// than a sample (25 us: a stop of both of them). One at a time holds the turn lock and takes a turn, and
// alone uses the turn's data. They belong to the recorder, however many processes it records.
//
// Called by the holder of the turn lock, except pin() and the lock itself, which any of them may call.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/process/thread_probe.h"
#include "phlox/sampler/capture/schedule.h"

namespace phlox::sampler {

class TurnLock {
 public:
  // Waits only briefly, because a waiting worker keeps the thread that it has caught from running. False: not
  // taken.
  bool try_lock();
  // Waits however long it takes, and sleeps in between, so that it keeps no thread from its CPU. True: it
  // slept, and the thread that it had caught has run.
  bool lock();
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr Nanoseconds kPatience = 150'000;
  std::atomic<bool> taken_{false};
};

struct Worker {
  bool events_only = false;     // another one samples the threads that no event catches
  int cpu = -1;                 // it is pinned there; -1: nowhere yet
  Nanoseconds waits_since = 0;  // the beginning of its last wait
  // Wakes it: there is something else to wait for, or nothing any more.
  void wake() const;

  // `probe`: a thread in the queue of this worker's CPU. True: it had left the CPU before this worker came.
  // False: this worker took the CPU from it. Nothing: the kernel does not say. Only this worker may call it.
  std::optional<bool> found_it_waiting(process::ThreadProbe& probe);

  pid_t tid = 0;       // of one that the others may move to another CPU
  uint64_t round = 0;  // of its last turn
  uint64_t list = 0;   // the sequence number of the list that it waits for
  Descriptor wake_up;  // an eventfd
  // What it waits for, and the owners of the events; `wake_up` is the first.
  std::vector<pollfd> wanted;
  std::vector<pid_t> tids;

 private:
  Descriptor sched_;  // its own file
};

class Workers {
 public:
  // `kept_free`: CPUs that none of them uses.
  explicit Workers(std::vector<int> kept_free = {});

  Worker& first() { return *workers_.front(); }
  // A further one, for events only, already pinned to `cpu`.
  Worker& add(int cpu);
  // The worker whose turn it is.
  Worker& current() const { return *current_; }
  void act_as(Worker& worker) { current_ = &worker; }

  // The round of the current turn: each worker has at most one turn in it. A running thread is sampled once a
  // round, by any worker.
  uint64_t begin_turn();
  // This many rounds pass without a turn, because nothing ran. Returns the last of them.
  uint64_t skip_rounds(uint64_t rounds);
  // Its next turn begins a round: it is for the threads that no event catches, and a thread that was sampled
  // in this one may sleep by now.
  void end_round(Worker& worker) const { worker.round = round_; }

  void wake_all() const;
  // The workers that wait on this CPU, except the current one.
  void wake_at(int cpu) const;

  // A thread of ours (0: the calling one) stays on this CPU from now on. False: not allowed.
  bool pin(pid_t tid, int cpu) const;
  // Moves the current one there. False: not allowed.
  bool follow(int cpu);
  // Moves it there to sample the running thread at a moment of its own: it sleeps for a random time, of 0.1
  // ms or `interval` / 8, and wakes up there. A thread that is made to leave its CPU from another one does so
  // where it comes out of the kernel: the interrupt takes microseconds, and a call that the thread makes
  // meanwhile ends in the switch. Without the sleep, samples would always find a thread that makes calls all
  // the time at the end of one. False: not allowed; it has not slept.
  bool wake_up_on(int cpu, Nanoseconds interval);
  // Moves a worker to a CPU without one: a worker that waits for no thread where it is, or the current one.
  void send_one_to(int cpu);
  // CPUs that both this process and the calling thread may use.
  std::vector<int> common_cpus(pid_t process) const;
  // How often one moved to another CPU.
  uint64_t migrations() const { return migrations_; }

 private:
  bool is_kept_free(int cpu) const;
  bool move(Worker& worker, pid_t tid, int cpu);

  std::vector<int> kept_free_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Worker* current_ = nullptr;
  uint64_t round_ = 0;
  uint64_t migrations_ = 0;
  Schedule after_moving_;
};

}  // namespace phlox::sampler
