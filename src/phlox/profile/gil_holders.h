// Who held the GIL while others waited for it, by thread and by line. Of all the samples of a recording that
// say "holds", one line of time is made for each interpreter: at each moment one holder, or nobody that was
// seen; each wait is laid upon it. The choices say whose waiting is told; who held it is told whoever that
// is. Pure.
#pragma once

#include <memory>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/sample_filter.h"

namespace phlox::profile {

// A thread in a line of a function: its innermost Python frame; none: without Python frames (where there are
// only native ones, the innermost of these).
struct GilPlace {
  ThreadId thread;
  FrameId frame;
  Nanoseconds wall = 0;
};

// One thread that waited.
struct GilWaiter {
  ThreadId thread;
  Nanoseconds wall = 0;           // for the GIL
  Nanoseconds unseen = 0;         // of that, while nobody was seen to hold it
  Nanoseconds free = 0;           // of that, while it stood in a queue for a CPU: it had been let go of
  std::vector<GilPlace> places;   // where it waited; the longest first
  std::vector<GilPlace> holders;  // who held it meanwhile; likewise
  std::vector<GilPlace> threads;  // `holders` by thread alone, likewise
};

// Who waits most comes first. O(n log n), and each wait looks at the holders of its own time.
std::vector<GilWaiter> gil_waiters(const Profile& profile, const SampleFilter& filter);

// The same of chosen waits.
class GilLines {
 public:
  explicit GilLines(const Profile& profile);
  ~GilLines();
  GilLines(const GilLines&) = delete;
  GilLines& operator=(const GilLines&) = delete;
  // `waits`: for the GIL, at least one, of one thread of the profile.
  GilWaiter waiter(const std::vector<const Sample*>& waits);

 private:
  struct State;
  const Profile& profile_;
  std::unique_ptr<State> state_;
};

// Where a thread is in its stack: what GilPlace::frame says.
FrameId innermost_python(const Profile& profile, StackId stack);

}  // namespace phlox::profile
