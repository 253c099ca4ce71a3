// Stacks that begin with a marker: a label of time (time_labels.h), an endpoint (endpoints.h). They are made
// on demand and added to those of the profile. Pure.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/base/spread.h"
#include "phlox/profile/profile.h"

namespace phlox::view {

class RootedStacks {
 public:
  // Markers are added to the profile's frames.
  explicit RootedStacks(profile::Profile& profile) : profile_(profile), stacks_(profile.stacks()) {}

  // The same number for the same text.
  uint32_t root(std::string_view text);
  // A stack of the profile below that root; none: "(no Python frames)" below it.
  profile::StackId of(uint32_t root, profile::StackId stack);
  // The profile's stacks, then those that were made; parents before children.
  std::vector<profile::Stack> take() { return std::move(stacks_); }

 private:
  uint32_t parent_of(uint32_t stack) const;
  uint32_t add(const profile::Stack& row);
  profile::FrameId marker(const std::string& text);

  profile::Profile& profile_;
  std::vector<profile::Stack> stacks_;
  tsl::robin_map<uint64_t, uint32_t, Spread> made_;  // root << 32 | stack
  tsl::robin_map<std::string, uint32_t> roots_, markers_;
};

}  // namespace phlox::view
