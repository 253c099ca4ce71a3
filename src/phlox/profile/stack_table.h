// Numbers stacks by their parent and frame: 1, 2, 3, ... in the order in which they are added. Takes 16 bytes
// for each on average; a general hash table takes up to 48.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "phlox/profile/model.h"

namespace phlox::profile {

class StackTable {
 public:
  // The largest number of stacks.
  static constexpr uint32_t kMost = (uint32_t{1} << 24) - 1;

  // None: it was not added.
  StackId find(StackId parent, FrameId frame) const;
  // Its number, and whether it is new. The table must hold fewer than kMost before.
  std::pair<StackId, bool> add(StackId parent, FrameId frame);
  // To be called before find() or add() for several stacks: each costs a cache miss or two, which then
  // overlap. First prefetch() for all, then prefetch_key() for all.
  void prefetch(StackId parent, FrameId frame) const;
  void prefetch_key(StackId parent, FrameId frame) const;
  uint32_t size() const { return static_cast<uint32_t>(keys_.size()); }

 private:
  // Where the key is, or where it goes.
  size_t place_of(uint64_t key) const;
  void grow();

  std::deque<uint64_t> keys_;  // parent << 32 | frame, by number - 1
  // 0, or 8 bits of a key's hash above 24 bits of its number. At most half of them are in use.
  std::vector<uint32_t> slots_;
};

}  // namespace phlox::profile
