// Who held the GIL during given waits of one thread. gil_holders.h has the sums of all threads. Pure.
#pragma once

#include <vector>

#include "phlox/profile/gil_holders.h"

namespace phlox::profile {

class GilHolds {
 public:
  explicit GilHolds(const Profile& profile);
  // The thread that held it for at least half of these waits, and the line in which it did, if that is one.
  // No thread: not known. `waits`: of one thread, in the order of time.
  GilPlace holder(const std::vector<const Sample*>& waits) const;

 private:
  const Profile& profile_;
  std::vector<const Sample*> holds_;  // by start
};

}  // namespace phlox::profile
