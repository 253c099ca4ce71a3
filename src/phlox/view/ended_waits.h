// The wakers of waits, where a recording knows them (--mode kernel): which thread released the lock, put into
// the queue or wrote to the pipe. Similar ones are added up. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/wait_target.h"
#include "phlox/view/sample_filter.h"
#include "phlox/view/wait_class.h"

namespace phlox::view {

// Waits at one place that one place of one thread ended. Places are those of asking_frame().
struct EndedWaits {
  WaitClass waits = WaitClass::other;
  int16_t system_call = -1;
  uint32_t wait_target = 0;  // of WaitTargetGroups
  profile::FrameId frame;
  profile::ThreadId by;       // the thread that ended most of this time; none: `other`
  uint32_t by_threads = 0;    // number of threads that ended any
  profile::FrameId by_frame;  // none: not known
  std::string other;          // not a thread of the same process: "nginx (99)", "sh (12 processes)"
  uint64_t count = 0;
  uint32_t threads = 0;  // that waited
  Nanoseconds wall = 0;  // from the start of each wait to its end
};

// The longest first. The choices select the waiting threads. Waits for the GIL are not included
// (gil_holders.h).
std::vector<EndedWaits> ended_waits(const profile::Profile& profile, const SampleFilter& filter,
                                    const profile::WaitTargetGroups& wait_targets);

}  // namespace phlox::view
