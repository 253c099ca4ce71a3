// Times in which an event loop did not wait for events for long, and the reason. A turn is the time of a
// loop's thread between two polls. The recording has only the polls that waited; one that did not wait leaves
// no trace (docs/report.md). So the time between two waits for events is one turn or several: `least` is the
// part that is certain. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/view/sample_filter.h"
#include "phlox/view/wait_class.h"

namespace phlox::view {

// A shorter turn is no stall, unless you choose otherwise.
inline constexpr Nanoseconds kStall = 50'000'000;

enum class StallKind : uint8_t { cpu, collecting, blocked, gil, no_cpu, unknown };
std::string_view stall_key(StallKind kind);  // for programs: "cpu"

struct Stall {
  Nanoseconds start = 0;  // since the start of the recording
  Nanoseconds wall = 0;   // from one wait for events to the next
  Nanoseconds least = 0;  // at least this much of it was one turn; 0: less than the limit
  Nanoseconds error = 0;  // of start and wall, either way
  Nanoseconds brief = 0;  // short waits for events, added up, which may be inside it or just before
  bool is_cut = false;    // it may have been longer: its beginning or its end is not in the recording
  StallKind kind = StallKind::unknown;  // the state with the largest part
  Nanoseconds of_kind = 0;
  profile::FrameId frame;         // the line that took longest in that state; none: not known
  uint32_t sample = 0;            // blocked: the longest wait, index + 1 into the profile's samples; 0: none
  size_t callbacks = 0;           // different functions that the loop called, as far as samples found them
  profile::ThreadId holder;       // gil: the thread that held it for most of that time; none: not known
  profile::FrameId holder_frame;  // where, most of that time

  // One turn, and its length is certain.
  bool is_one_turn() const;
};

// The stalls of one loop's thread.
struct LoopStalls {
  profile::ThreadId thread;
  bool exact = false;        // waits are the scheduler's own account; otherwise only samples are known
  Nanoseconds interval = 0;  // otherwise: the time between two samples
  Nanoseconds shortest = 0;  // the limit
  std::vector<Stall> rows;   // the longest first
  size_t proved = 0;         // of these, the stalls in which one turn reached the limit
  Nanoseconds wall = 0;      // of all of them together
};
// For each thread that ran an event loop and has samples that pass `filter`: stalls of `shortest` and more.
// `filter`: must judge.
std::vector<LoopStalls> loop_stalls(const profile::Profile& profile, const SampleFilter& filter,
                                    Nanoseconds shortest);

// "404 ms", "60 ms to 260 ms", "at least 404 ms", "404 ms ± 10 ms".
std::string stall_length(const Stall& stall);
// "read_config (app.py:28)"; empty: not known.
std::string stall_place(const profile::Profile& profile, profile::FrameId frame);
// "asleep", "on a CPU", "waiting for a file, /etc/app.conf (read)", "waiting for the GIL, held by Thread
// worker (12) in spin (app.py:7)".
std::string stall_words(const profile::Profile& profile, WaitClasses& classes, const Stall& stall);
// "54 stalls of 50 ms or more; the longest 404 ms at 2.85 s in read_config (app.py:28), asleep". Empty: none.
std::string stalls_words(const profile::Profile& profile, const LoopStalls& stalls);
// The longest: "stall of 404 ms in read_config (app.py:28), asleep", or "404 ms without a wait for events in
// …" if that may have been several turns. Empty: none.
std::string longest_stall_words(const profile::Profile& profile, const LoopStalls& stalls);

}  // namespace phlox::view
