// Divides the samples of an event loop's thread into turns: the times between two polls. loop_stalls.h judges
// the long ones. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/view/loop_stacks.h"
#include "phlox/view/work.h"

namespace phlox::view {

// What a sample shows about its thread's loop.
enum class LoopStep : uint8_t {
  waits,    // for events: between two turns
  polls,    // found in the poll: between two turns, too
  own,      // in the loop's code
  turn,     // in a callback of the loop
  unread,   // its stack was not read
  unknown,  // a wait that may have been for events
  outside,  // its relation to a turn is not known
};
struct LoopSample {
  uint32_t sample = 0;  // index
  LoopStep step = LoopStep::outside;
  LoopPlace place;
};

struct LoopTurn {
  size_t first = 0, last = 0;  // rows; the last one is excluded
  Nanoseconds start = 0, end = 0;
  bool is_cut = false;    // its beginning or its end was not seen
  Nanoseconds brief = 0;  // short waits for events, somewhere within it
};

// The kernel adds up waits that are shorter than a limit of 1 to 32 ms (ShortestWait). Their sum is below two
// and a half times that limit, looks like one wait, and has the stack of one of them, or of an earlier one.
inline constexpr double kSumOfShort = 2.5;
inline constexpr Nanoseconds kLongestSum = 80'000'000;

// poll, select, epoll_wait and their relatives: how a loop waits for events.
bool is_poll_call(int16_t system_call, bool aarch64);

class LoopTurns {
 public:
  LoopTurns(const profile::Profile& profile, const WorkRule& rule, LoopStacks& stacks);

  // `samples`: indexes of one thread's samples, in time order. `own_stacks`: a stack without a loop was
  // called by the loop, too.
  std::vector<LoopSample> rows(const std::vector<uint32_t>& samples, bool own_stacks);
  std::vector<LoopTurn> turns(const std::vector<LoopSample>& rows) const;

 private:
  LoopSample row_of(uint32_t index, bool own_stacks);

  const profile::Profile& profile_;
  const WorkRule& rule_;
  LoopStacks& stacks_;
  const bool aarch64_;
};

}  // namespace phlox::view
