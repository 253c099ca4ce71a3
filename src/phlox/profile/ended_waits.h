// Who ended the waits of threads, where a recording knows it (--way kernel): whose lock was released, who put
// into the queue, who wrote to the pipe. Alike ones are added up. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/profile/awaited.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/sample_filter.h"
#include "phlox/profile/wait_class.h"

namespace phlox::profile {

// Waits at one place that one place of one thread ended. Places are asking_frame()'s.
struct EndedWaits {
  WaitClass waits = WaitClass::other;
  int16_t system_call = -1;
  uint32_t awaited = 0;  // of AlikeAwaited
  FrameId frame;
  ThreadId by;              // that ended them longest; none: `other`
  uint32_t by_threads = 0;  // that ended any
  FrameId by_frame;         // none: not known
  std::string other;        // who is no thread of the same process: "nginx (99)", "sh (12 processes)"
  uint64_t count = 0;
  uint32_t threads = 0;  // that waited
  Nanoseconds wall = 0;  // from the start of each wait to the moment it was ended
};

// The longest first. The choices are about who waits. The GIL's are left out (gil_holders.h).
std::vector<EndedWaits> ended_waits(const Profile& profile, const SampleFilter& filter,
                                    const AlikeAwaited& awaited);

}  // namespace phlox::profile
