// The threads of ours that look, and the CPUs that they are on. One where looks go from CPU to CPU with the
// target; with perf events one on each CPU where a thread may be caught by its event, since going there costs
// more than a look (25 us: a stop of both of them). One at a time holds the turn lock and takes a turn; what
// a turn uses is nobody else's meanwhile. They are the recorder's, however many processes it records.
//
// Called by whoever holds the turn lock, but for pin() and the lock itself, which any of them may call.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/sampler/capture/schedule.h"

namespace phlox::sampler {

class TurnLock {
 public:
  // Who waits for it keeps a thread that it has caught from running on, so not for long: false, after that.
  bool try_lock();
  // However long it takes, asleep in between, so that nobody is kept from a CPU by it. True: it slept, and
  // whoever was caught has run on.
  bool lock();
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr Nanoseconds kPatience = 150'000;
  std::atomic<bool> taken_{false};
};

struct Worker {
  bool events_only = false;     // another one sees to those that no event catches
  int cpu = -1;                 // it is pinned there; -1: nowhere yet
  Nanoseconds waits_since = 0;  // its last wait began
  // Wakes it where it waits: there is something else to wait for, or nothing any more.
  void wake() const;

  pid_t tid = 0;       // of one that may be sent elsewhere by the others
  uint64_t round = 0;  // in which it had its last turn
  uint64_t list = 0;   // what it waits for is the how-manieth such list
  Descriptor wake_up;  // an eventfd
  // What it waits for, and whose events they are; `wake_up` is the first.
  std::vector<pollfd> wanted;
  std::vector<pid_t> tids;
};

class Workers {
 public:
  // `kept_free`: CPUs that none of them goes to.
  explicit Workers(std::vector<int> kept_free = {});

  Worker& first() { return *workers_.front(); }
  // A further one, for events only, pinned to `cpu` already.
  Worker& add(int cpu);
  // Whose turn it is.
  Worker& current() const { return *current_; }
  void act_as(Worker& worker) { current_ = &worker; }

  // The round that the current one's turn belongs to: each has at most one in it. A running thread is looked
  // at once a round, by whomever.
  uint64_t begin_turn();
  // So many rounds go by without a turn, since nothing ran. Gives the last of them.
  uint64_t skip_rounds(uint64_t rounds);
  // Its next turn begins a round: it is for those that no event catches, and who was looked at in this one
  // may sleep by now.
  void end_round(Worker& worker) const { worker.round = round_; }

  void wake_all() const;
  // Those that wait on this CPU, but for the current one.
  void wake_at(int cpu) const;

  // A thread of ours (0: the calling one) stays on this CPU from now on. False: it may not.
  bool pin(pid_t tid, int cpu) const;
  // The current one goes there. False: it may not.
  bool follow(int cpu);
  // It goes there to look at who runs there, at a moment of its own: it sleeps for a random time, of 0.1 ms
  // or `interval` / 8, and wakes up there. For who is made to leave a CPU from another one does so where it
  // comes out of the kernel: the interrupt that tells it to takes microseconds, and a call that it makes
  // meanwhile ends in leaving. Seen as we come, a thread that makes calls all the time is always at the end
  // of one. False: it may not; it has not slept.
  bool wake_up_on(int cpu, Nanoseconds interval);
  // Somebody goes to a CPU where nobody is: one that waits for nobody where it is, or the current one.
  void send_one_to(int cpu);
  // CPUs on which both this process and the calling thread may run.
  std::vector<int> common_cpus(pid_t process) const;
  // Times that one went to another CPU.
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
