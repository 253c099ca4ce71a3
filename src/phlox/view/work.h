// Distinguishes waiting within a program's work from a thread's waiting for something to do. Of sixty pool
// threads, fifty-eight only wait for something to do, and their time would be 97 % of every picture.
// docs/decisions/0005 has the rule and its reasons. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/view/view.h"
#include "phlox/view/wait_places.h"

namespace phlox::view {

// Judges samples one by one: by the stack, the system call, and the wait target; a wait whose stack was not
// read also by the thread's other waits.
class WorkRule {
 public:
  explicit WorkRule(const profile::Profile& profile);
  Doing of(const profile::Sample& sample) const;
  const WaitPlaces& places() const { return places_; }

 private:
  // The waits of a thread in one system call whose stacks were read.
  struct CallRow {
    int16_t system_call = -1;
    uint32_t waits = 0;
    Doing doing = Doing::waiting_unknown;  // of all of them; waiting_unknown: they differ
  };
  struct ThreadRow {
    uint32_t process = 0;
    bool main = false;
    bool of_lock_pool = false;  // a worker of a pool that hands over its work by a lock
    std::vector<CallRow> calls;
  };
  struct ProcessRow {
    uint32_t threads = 0;
    bool parent = false;  // the parent of a recorded process
  };
  void learn_calls();
  bool is_unread(const profile::Sample& sample) const;
  Doing of_unread(const profile::Sample& sample) const;
  Doing at_root(const profile::Sample& sample, const WaitPlace& place) const;
  Doing elsewhere(const profile::Sample& sample, const WaitPlace& place) const;
  Doing for_children(const profile::Sample& sample) const;
  Doing for_others(const profile::Sample& sample) const;
  bool waits_for_clients(const profile::Sample& sample) const;
  bool waits_for(const profile::Sample& sample, profile::WaitTargetKind kind) const;
  template <class Calls>
  bool is_in(const Calls& calls, const profile::Sample& sample) const {
    return is_call(calls, sample.system_call, aarch64_);
  }

  const profile::Profile& profile_;
  WaitPlaces places_;
  std::vector<ThreadRow> threads_;     // by id
  std::vector<ProcessRow> processes_;  // by id
  bool aarch64_ = false;
};

// Waiting of one kind: where, and in how many threads.
struct WaitingAt {
  struct Place {
    std::string name;  // the function that waits
    std::string file;  // its last part
    Nanoseconds wall = 0;
    size_t threads = 0;
  };
  Nanoseconds wall = 0;
  size_t threads = 0;         // number of threads with waiting of this kind
  size_t of_threads = 0;      // number of threads that were seen
  std::vector<Place> places;  // the longest first
};
// What `--show work` leaves out, and the waiting that it shows although it is not known to be work.
struct LeftOut {
  WaitingAt for_work, for_others, unknown;
  Nanoseconds wall() const { return for_work.wall + for_others.wall; }
};
// Empty if `choices` show something else.
LeftOut waiting_for_work(const profile::Profile& profile, const Choices& choices);
// "597 s of waiting for something to do, in 60 of 62 threads: 58 in worker (pool.py), 2 in _run_once
// (base_events.py)"; empty: nothing is left out.
std::string left_out_words(const LeftOut& left_out);
// "1.20 s in 1 of 3 threads: 1 in tick (app.py)"; empty: there is none.
std::string unknown_words(const LeftOut& left_out);

}  // namespace phlox::view
