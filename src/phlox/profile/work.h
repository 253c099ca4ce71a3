// Which waiting belongs to what the program does, and which is a thread's waiting for something to do: of
// sixty pool threads fifty-eight do nothing but that, and their time would be 97 % of every picture.
// docs/decisions/0005 has the rule and why it is this one. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/view.h"

namespace phlox::profile {

// Judges every sample of a recording, by all samples of the choice (time, threads; its `show` is not looked
// at).
class WorkRule {
 public:
  // `filter`: which samples are asked about; one that shows everything.
  WorkRule(const Profile& profile, const Choices& choices, const SampleFilter& filter);
  Doing of(const Sample& sample) const;

  // Names of the threads that count as working, and of those that count even where they wait for something to
  // do: what another recording's rule is given, so that two are judged alike.
  ThreadNames names(const Profile& profile) const;

 private:
  // A place where a thread may wait for work: the function that asked for it, as a path from the root. 0:
  // none.
  uint32_t asking(const Sample& sample) const;
  bool waits_for_events(const Sample& sample) const;
  void number_paths(const Profile& profile);
  void judge_places(const Profile& profile, const SampleFilter& filter);
  void judge_threads(const Profile& profile, const Choices& choices, const SampleFilter& filter);
  bool waits_for_others(const Sample& sample) const;
  bool may_ask_others(ThreadId thread) const { return !thread_[thread.value].main; }

  enum class Wait : uint8_t { none, event, notification };
  enum class Awaits : uint8_t { nothing, others, children };
  struct StackRow {
    uint32_t path = 0;    // of its innermost Python function
    uint32_t asking = 0;  // path of the function that called what waits; 0: nothing here is known to wait
    Wait wait = Wait::none;
    bool loop = false;  // `asking` is an event loop by its name
    Awaits awaits = Awaits::nothing;
  };
  const StackRow& row_of(const Sample& sample) const;
  struct ThreadRow {
    uint32_t process = 0;
    bool main = false;
    bool only_waits = false;
    bool whole = false;  // nothing of it is waiting for work
    // What other threads of its process compute, and the processes beneath it: so much that waiting for them
    // is no news; anything at all.
    bool others_compute = false;
    bool children_compute = false;
    bool hands_out = false;    // computes little, and less than another
    bool asks_others = false;  // a main thread that computes little, and less than those others
    bool housekeeps = false;   // hands_out, and no other thread of its process waits where it does
    Nanoseconds computing = 0, wall = 0;
    Nanoseconds running = 0;                       // of computing, without waiting for the GIL
    Nanoseconds waiting = 0, longest_waiting = 0;  // all of it; at the place where it waits longest
    uint32_t place = 0;                            // that one, a path
  };
  std::vector<StackRow> stack_;                           // by stack id
  std::vector<uint32_t> path_parent_;                     // by path
  std::vector<ThreadRow> thread_;                         // by thread id
  std::vector<uint64_t> places_for_work_;                 // thread << 32 | path, sorted
  std::vector<std::pair<uint64_t, Nanoseconds>> waited_;  // by thread << 32 | path
  bool aarch64_ = false;
};

// What `--show work` leaves out.
struct LeftOut {
  struct Place {
    std::string name;  // the function that waits
    std::string file;  // its last part
    Nanoseconds wall = 0;
    size_t threads = 0;
  };
  Nanoseconds wall = 0;
  size_t threads = 0;         // of which something is left out
  size_t of_threads = 0;      // that were seen
  std::vector<Place> places;  // the longest first
};
LeftOut waiting_for_work(const Profile& profile, const Choices& choices);
// "597 s of waiting for something to do, in 60 of 62 threads: 58 in worker (pool.py), 2 in _run_once
// (base_events.py)"; empty: nothing is left out.
std::string left_out_words(const LeftOut& left_out);

// The choices with which two recordings are compared: a thread that works in one of them counts as working in
// both.
Choices choices_for_both(const Profile& before, const Profile& after, const Choices& choices);

}  // namespace phlox::profile
