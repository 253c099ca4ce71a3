// The wait targets of a page's intervals, and their wakers: each a row once. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tsl/robin_map.h>

#include "phlox/base/spread.h"
#include "phlox/exporters/page_tables.h"
#include "phlox/profile/wait_target.h"
#include "phlox/view/wait_class.h"

namespace phlox::exporters {

class PageWaits {
 public:
  // The number of waits with all details; further ones have only their wait target and place.
  static constexpr size_t kMostInFull = 50'000;
  static constexpr size_t kMost = 2 * kMostInFull;

  // `place_of`: the page's number of a frame's place.
  PageWaits(const profile::Profile& profile, std::function<uint32_t(profile::FrameId)> place_of);

  // By the index of a sample of the recording. 0: it is not blocked, or there is no room.
  uint32_t of(size_t sample);
  std::vector<PageWait> finish() && { return std::move(waits_); }

 private:
  uint32_t number(const profile::Sample& sample, profile::WakerId waker);
  PageWait row(const profile::Sample& sample, profile::WakerId waker);

  const profile::Profile& profile_;
  std::function<uint32_t(profile::FrameId)> place_of_;
  std::string machine_;
  std::vector<profile::WakerId> wakers_;  // by sample
  view::WaitClasses classes_;
  profile::WaitTargetGroups alike_;
  std::vector<PageWait> waits_ = std::vector<PageWait>(1);
  std::map<PageWait, uint32_t> known_;
  // By stack and system call; by wait target and waker; by both.
  tsl::robin_map<uint64_t, uint32_t, Spread> asked_, outcomes_, met_;
};

}  // namespace phlox::exporters
