// When an event loop did not wait for events for long, and what kept it. A turn is the time of a loop's
// thread between two polls. The recording has the polls that waited. One that did not wait leaves no trace
// (docs/report.md), so what lies between two waits for events is one turn or several: `least` says what is
// certain. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/sample_filter.h"
#include "phlox/profile/wait_class.h"

namespace phlox::profile {

inline constexpr Nanoseconds kStall = 50'000'000;  // a shorter turn is none, unless you choose otherwise

enum class StallKind : uint8_t { cpu, collecting, blocked, gil, no_cpu, unknown };
std::string_view stall_key(StallKind kind);  // for programs: "cpu"

struct Stall {
  Nanoseconds start = 0;  // since the start of the recording
  Nanoseconds wall = 0;   // from one wait for events to the next
  Nanoseconds least = 0;  // of that, one turn took at least so much; 0: that is less than was asked for
  Nanoseconds error = 0;  // of start and wall, either way
  Nanoseconds brief = 0;  // short waits for events, added up, which may lie in it or just before
  bool is_cut = false;    // the recording begins or ends within it: it took longer
  StallKind kind = StallKind::unknown;  // what most of it was
  Nanoseconds of_kind = 0;
  FrameId frame;         // the line that took longest in that state; none: not known
  uint32_t sample = 0;   // blocked: the longest wait, index + 1 into the profile's samples; 0: none
  size_t callbacks = 0;  // different functions that the loop was found to have called
  ThreadId holder;       // gil: the thread that held it for most of that time; none: not known
  FrameId holder_frame;  // where, most of that time

  // One turn, and its length is certain.
  bool is_one_turn() const;
};

// Of one loop's thread.
struct LoopStalls {
  ThreadId thread;
  bool exact = false;        // waits are the scheduler's own account; else all is known by samples alone
  Nanoseconds interval = 0;  // else: between two of these
  Nanoseconds shortest = 0;  // that was asked for
  std::vector<Stall> rows;   // the longest first
  size_t proved = 0;         // of them, those in which one turn took as long as was asked for
  Nanoseconds wall = 0;      // of all of them
};
// Of each thread that ran an event loop and of which `filter` lets something pass: stalls of `shortest` and
// more. `filter`: one that judges.
std::vector<LoopStalls> loop_stalls(const Profile& profile, const SampleFilter& filter, Nanoseconds shortest);

// "404 ms", "60 ms to 260 ms", "at least 404 ms", "404 ms ± 10 ms".
std::string stall_length(const Stall& stall);
// "read_config (app.py:28)"; empty: not known.
std::string stall_place(const Profile& profile, FrameId frame);
// "asleep", "on a CPU", "waiting for a file, /etc/app.conf (read)", "waiting for the GIL, held by Thread
// worker (12) in spin (app.py:7)".
std::string stall_words(const Profile& profile, WaitClasses& classes, const Stall& stall);
// "54 stalls of 50 ms or more; the longest 404 ms at 2.85 s in read_config (app.py:28), asleep". Empty: none.
std::string stalls_words(const Profile& profile, const LoopStalls& stalls);
// Of the longest: "stall of 404 ms in read_config (app.py:28), asleep", or "404 ms without a wait for events
// in …" where that may have been several turns. Empty: none.
std::string longest_stall_words(const Profile& profile, const LoopStalls& stalls);

}  // namespace phlox::profile
