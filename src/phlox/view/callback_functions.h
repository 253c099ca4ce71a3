// Which functions of the program are on the stacks of a loop's callbacks, and how often: whether a turn
// stayed in one callback for longer than chance explains. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/view/loop_stacks.h"
#include "phlox/view/loop_turns.h"

namespace phlox::view {

inline constexpr int64_t kFewSamples = 5;  // a run of fewer proves nothing

class CallbackFunctions {
 public:
  explicit CallbackFunctions(const profile::Profile& profile) : profile_(profile) {}
  // Forgets what is usual: the next rows are of another thread.
  void begin();
  // A row of a turn that is no stall.
  void add_usual(const LoopSample& row);
  // Whether one function was on the stack in all samples of a time of at least `shortest`, whatever it
  // called, although in usual turns it is so seldom there that many callbacks in a row would explain this
  // with a probability below `chance` only. False also if too few samples of usual turns are known.
  bool stay(const std::vector<LoopSample>& rows, const LoopTurn& turn, Nanoseconds shortest, double chance);

 private:
  // A number for each that is in no library, without callers of the loop. Caches the result for each stack.
  const std::vector<uint32_t>& of(const LoopSample& row);
  double usual_share(uint32_t function) const;

  const profile::Profile& profile_;
  std::map<Function, uint32_t> numbers_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> known_;  // by stack
  std::unordered_map<uint32_t, int64_t> usual_;                // samples with the function
  int64_t usual_samples_ = 0;                                  // in callbacks
};

}  // namespace phlox::view
