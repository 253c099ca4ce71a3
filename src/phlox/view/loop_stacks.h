// Where a stack is in an event loop: in its poll, in its own code, or in a function that it called. Decided
// by the stack alone. Used by the rules for a loop's time (loops_and_pools.h, loop_stalls.h). Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "phlox/view/known_waits.h"
#include "phlox/view/wait_places.h"

namespace phlox::view {

enum class InLoop : uint8_t {
  not_in_it,  // no loop is on the stack
  not_read,   // a marker replaces the stack
  poll,       // in the function that polls on the loop's behalf
  own,        // in the loop's own code; for a loop in C this is also its poll
  callback,
};
struct LoopPlace {
  InLoop at = InLoop::not_in_it;
  profile::FrameId
      callback;  // the function that the loop called; for a stack without a loop, its first function
  // The innermost line below the loop that is not a library's; otherwise the callback's.
  profile::FrameId program;
  profile::StackId loop;  // the row of the loop's function
};
// Frames that differ only in their line belong to one function.
using Function = std::tuple<std::string_view, std::string_view, int32_t>;
Function function_of(const profile::Frame& frame);

// Caches the result for each stack. A process that was forked in a callback has its parent's loop on its
// stack: that is no loop of this process, unless it polls itself.
class LoopStacks {
 public:
  LoopStacks(const profile::Profile& profile, const WaitPlaces& places);
  LoopPlace of(const profile::Sample& sample);
  uint32_t loop(const profile::Sample& sample);  // by WaitPlaces::name; 0: none

 private:
  // The thread, and the loop's function with the stack that called it.
  using Run = std::tuple<uint32_t, uint32_t, Function>;
  const LoopPlace& of_stack(profile::StackId stack);
  Run run_of(const profile::Sample& sample, const LoopPlace& place) const;
  bool is_inherited(const profile::Sample& sample);
  void find_forks();
  LoopPlace find(profile::StackId stack) const;
  const KnownFunction* caller(profile::StackId stack) const;

  const profile::Profile& profile_;
  const WaitPlaces& places_;
  std::vector<bool> is_forked_;              // by thread: the one that came out of fork()
  std::set<Run> polled_;                     // of those threads
  std::vector<const KnownFunction*> known_;  // by frame - 1
  std::vector<bool> is_loop_;                // by stack: a loop in C that no table knows
  std::vector<bool> found_;                  // by stack
  std::vector<LoopPlace> stacks_;
};

// Their callbacks run on stacks of their own, which do not contain the loop.
bool has_own_stacks(std::string_view loop);
bool is_of_a_library(const profile::Frame& frame);

}  // namespace phlox::view
