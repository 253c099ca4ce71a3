// Gives ids to frames and stacks: the same content, the same id. Tells the Sink each new row once, parents before children.
// One hash look-up an upsert. Pure.
#pragma once

#include <cstdint>

#include <tsl/robin_map.h>

#include "phlox/profile/model.h"
#include "phlox/profile/sink.h"

namespace phlox::profile {

struct FrameHash {
  size_t operator()(const Frame& frame) const;
};

class Interner {
 public:
  explicit Interner(Sink& sink) : sink_(sink) {}

  FrameId frame(const Frame& frame);
  // `parent` none: the root of a stack.
  StackId stack(StackId parent, FrameId frame);

 private:
  Sink& sink_;
  tsl::robin_map<Frame, FrameId, FrameHash> frames_;
  tsl::robin_map<uint64_t, StackId> stacks_;  // by parent << 32 | frame
};

}  // namespace phlox::profile
