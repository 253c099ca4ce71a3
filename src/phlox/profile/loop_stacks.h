// Where a stack is in an event loop: in its poll, in its own code, or in a function that it called. Decided
// by the stack alone. Used by the rules for a loop's time (loops_and_pools.h, loop_stalls.h). Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "phlox/profile/known_waits.h"
#include "phlox/profile/wait_places.h"

namespace phlox::profile {

enum class InLoop : uint8_t {
  not_in_it,  // no loop is on the stack
  not_read,   // a marker replaces the stack
  poll,       // in the function that polls on the loop's behalf
  own,        // in the loop's own code; for a loop in C this is also its poll
  callback,
};
struct LoopPlace {
  InLoop at = InLoop::not_in_it;
  FrameId callback;  // the function that the loop called; for a stack without a loop, its first function
  // The innermost line below the loop that is not a library's; otherwise the callback's.
  FrameId program;
};

// Caches the result for each stack.
class LoopStacks {
 public:
  LoopStacks(const Profile& profile, const WaitPlaces& places);
  const LoopPlace& of(StackId stack);

 private:
  LoopPlace find(StackId stack) const;

  const Profile& profile_;
  std::vector<const KnownFunction*> known_;  // by frame - 1
  std::vector<bool> is_loop_;                // by stack: a loop in C that no table knows
  std::vector<bool> found_;                  // by stack
  std::vector<LoopPlace> stacks_;
};

// Their callbacks run on stacks of their own, which do not contain the loop.
bool has_own_stacks(std::string_view loop);
bool is_of_a_library(const Frame& frame);

// Frames that differ only in their line belong to one function.
using Function = std::tuple<std::string_view, std::string_view, int32_t>;
Function function_of(const Frame& frame);

}  // namespace phlox::profile
