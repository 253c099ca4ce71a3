// Gives each frame and each stack its id, and reports a new one to the Sink once. The sampler's consumer
// calls it for everything in its records. Pure: no clock, no file. Keeps hashes, not names, so a target that
// makes new functions for hours costs some tens of bytes for each.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "phlox/base/spread.h"
#include "phlox/profile/sink.h"
#include "phlox/profile/stack_table.h"

namespace phlox::profile {

class Interner {
 public:
  // The recorded program may create new names for ever. Ordinary recordings have some thousand frames; at
  // these limits the interner takes at most some 400 MB, and the file stays readable.
  struct Limits {
    uint32_t frames = 1'000'000;
    size_t name_bytes = size_t{128} << 20;
    uint32_t stacks = 8'000'000;
    size_t wakers = 1'000'000;
    size_t wait_targets = 1'000'000;
  };

  // The sink must outlive the interner.
  explicit Interner(Sink& sink) : Interner(sink, Limits()) {}
  Interner(Sink& sink, const Limits& limits) : sink_(sink), limits_(limits) {}

  // The id of the frame with this content. Two frames are the same if all their fields are equal (compared by
  // 128 bits of hash: two of a million frames collide in one recording of 10^26). Beyond the limits: a
  // marker. `owner`: the process, for frames that are valid in one process only; the same content of another
  // owner is another frame.
  FrameId frame(const Frame& frame, uint32_t owner = 0);

  // The frame with the caller's key, such as code id << 32 | line; one hash lookup if the key is known.
  // `make()` returns the Frame and is called only the first time. Keys of equal content give the same id. A
  // key must keep its meaning.
  template <class Make>
  FrameId frame(uint64_t key, Make&& make) {
    auto [at, added] = frames_by_key_.try_emplace(key, FrameId{});
    if (added) at.value() = frame(std::forward<Make>(make)());
    return at->second;
  }

  // An id for a frame that the caller emits itself, at once. Beyond the limits: none.
  FrameId new_frame();

  // `parent` none: the root of a stack. Beyond the limit: the parent.
  StackId stack(StackId parent, FrameId frame);
  // Root first, below `parent`. None if there are no frames and no parent.
  StackId stack(std::span<const FrameId> frames, StackId parent = {});

  // Several stacks, each by its parent and frame, into `out` at the same places: faster than one by one where
  // there are millions. A parent is not the result of another one of them.
  struct Step {
    StackId parent;
    FrameId frame;
  };
  void stacks(std::span<const Step> steps, std::span<StackId> out);

  // The same for wakers. Beyond the limit: none.
  WakerId waker(const Waker& waker);
  // The same for wait targets.
  WaitTargetId wait_target(const WaitTarget& wait_target);

  uint32_t frames() const { return last_frame_; }
  uint32_t stacks() const { return stacks_.size(); }
  // Requests of frame() and stack() beyond the limits.
  uint64_t left_out() const { return left_out_; }

 private:
  struct ContentKey {
    uint64_t low = 0;
    uint64_t high = 0;
    friend bool operator==(const ContentKey&, const ContentKey&) = default;
  };
  struct ContentHash {
    size_t operator()(const ContentKey& key) const noexcept { return key.low; }
  };
  static ContentKey content_key(const Frame& frame, uint32_t owner);
  FrameId too_many();

  Sink& sink_;
  Limits limits_;
  size_t name_bytes_ = 0;
  uint64_t left_out_ = 0;
  FrameId too_many_;
  tsl::robin_map<uint64_t, FrameId, Spread> frames_by_key_;
  tsl::robin_map<ContentKey, FrameId, ContentHash> frames_by_content_;
  StackTable stacks_;
  std::map<std::tuple<ThreadId, StackId, std::string>, WakerId> wakers_;
  std::map<std::tuple<WaitTargetKind, std::string, std::string>, WaitTargetId> wait_targets_;
  uint32_t last_frame_ = 0;
};

}  // namespace phlox::profile
