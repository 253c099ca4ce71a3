// Gives several stacks their ids at once. A table of millions of stacks is not in the processor's caches:
// looking up one after the other means waiting for memory each time. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "phlox/profile/interner.h"

namespace phlox::importers {

class StackBatch {
 public:
  explicit StackBatch(profile::Interner& interner) : interner_(interner) {}

  // The next stack begins with the first `shared` frames of the previous one; the others follow by push().
  void begin(size_t shared);
  void push(profile::FrameId frame);
  // Ends the stack that begin() began.
  void end();
  bool full() const { return ends_.size() >= kMostStacks || nodes_.size() >= kMostNodes; }
  // The ids of the stacks since the last call, in order; none for a stack without frames. Valid until the
  // next begin().
  std::span<const profile::StackId> finish();

 private:
  static constexpr size_t kMostStacks = 64, kMostNodes = 1024;
  static constexpr uint32_t kNone = UINT32_MAX;

  // A frame of a stack: of an earlier batch, which has its id, or of this one.
  struct Level {
    profile::StackId id;
    uint32_t node = kNone;
  };
  struct Node {
    Level parent;
    profile::FrameId frame;
    uint32_t round = 0;  // one more than its parent's
    profile::StackId id;
  };
  profile::StackId id_of(const Level& level) const {
    return level.node == kNone ? level.id : nodes_[level.node].id;
  }

  profile::Interner& interner_;
  std::vector<Level> path_;  // of the last stack
  size_t settled_ = 0;       // levels of the path that are of earlier batches
  std::vector<Node> nodes_;
  std::vector<std::vector<uint32_t>> rounds_;  // nodes
  std::vector<Level> ends_;
  std::vector<profile::Interner::Step> steps_;
  std::vector<profile::StackId> ids_;
};

}  // namespace phlox::importers
