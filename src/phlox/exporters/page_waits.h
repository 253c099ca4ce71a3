// What the stretches of a page wait for, and who ended that: each a row once. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tsl/robin_map.h>

#include "phlox/base/spread.h"
#include "phlox/exporters/page_tables.h"
#include "phlox/profile/awaited.h"
#include "phlox/profile/wait_class.h"

namespace phlox::exporters {

class PageWaits {
 public:
  // Of so many all is told; of further ones only what they wait for, and where.
  static constexpr size_t kMostInFull = 50'000;
  static constexpr size_t kMost = 2 * kMostInFull;

  // `place_of`: the page's number of where a frame is.
  PageWaits(const profile::Profile& profile, std::function<uint32_t(profile::FrameId)> place_of);

  // Of the recording's samples, by index. 0: it is not blocked, or there is no room.
  uint32_t of(size_t sample);
  std::vector<PageWait> finish() && { return std::move(waits_); }

 private:
  uint32_t number(const profile::Sample& sample, profile::WakeId wake);
  PageWait row(const profile::Sample& sample, profile::WakeId wake);

  const profile::Profile& profile_;
  std::function<uint32_t(profile::FrameId)> place_of_;
  std::string machine_;
  std::vector<profile::WakeId> wakes_;  // by sample
  profile::WaitClasses classes_;
  profile::AlikeAwaited alike_;
  std::vector<PageWait> waits_ = std::vector<PageWait>(1);
  std::map<PageWait, uint32_t> known_;
  // By stack and system call; by what was awaited and who ended it; by both.
  tsl::robin_map<uint64_t, uint32_t, Spread> asked_, told_, met_;
};

}  // namespace phlox::exporters
