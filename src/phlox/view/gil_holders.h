// Which thread held the GIL while others waited for it, by thread and by line. The samples of a recording
// that say "holds" give one line of time for each interpreter: at each moment one holder, or none that was
// seen. Each wait is compared with it. The choices select the waiting threads; the holder is named whichever
// thread it is. Pure.
#pragma once

#include <memory>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/view/sample_filter.h"

namespace phlox::view {

// A thread in a line of a function: its innermost Python frame; none: no Python frames (if there are only
// native ones, the innermost of these).
struct GilPlace {
  profile::ThreadId thread;
  profile::FrameId frame;
  Nanoseconds wall = 0;
};

// One thread that waited.
struct GilWaiter {
  profile::ThreadId thread;
  Nanoseconds wall = 0;           // for the GIL
  Nanoseconds unseen = 0;         // of that, while no holder was seen
  Nanoseconds free = 0;           // of that, while it queued for a CPU: the GIL had been released
  std::vector<GilPlace> places;   // where it waited; the longest first
  std::vector<GilPlace> holders;  // which thread held it meanwhile; the longest first
  std::vector<GilPlace> threads;  // `holders` by thread only; the longest first
};

// The thread that waits longest comes first. O(n log n); each wait searches only the holders of its own time.
std::vector<GilWaiter> gil_waiters(const profile::Profile& profile, const SampleFilter& filter);

// The same for chosen waits.
class GilLines {
 public:
  explicit GilLines(const profile::Profile& profile);
  ~GilLines();
  GilLines(const GilLines&) = delete;
  GilLines& operator=(const GilLines&) = delete;
  // `waits`: for the GIL, at least one, all of one thread of the profile.
  GilWaiter waiter(const std::vector<const profile::Sample*>& waits);

 private:
  struct State;
  const profile::Profile& profile_;
  std::unique_ptr<State> state_;
};

// A thread's place in its stack: the meaning of GilPlace::frame.
profile::FrameId innermost_python(const profile::Profile& profile, profile::StackId stack);

}  // namespace phlox::view
