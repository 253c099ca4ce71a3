// Samples without a stack of which it is known that the thread was in no work item: waits for something to
// do, which WorkRule knows by the thread's other waits, and waits for a CPU that begin where such a wait
// ends. The thread has run nothing in between, so it is still at the place where it waited.
// docs/decisions/0005. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>

#include "phlox/profile/profile.h"

namespace phlox::view {

class UnreadFetches {
 public:
  UnreadFetches() = default;  // none
  explicit UnreadFetches(const profile::Profile& profile);

  bool contains(const profile::Sample& sample) const {
    return !known_.empty() && known_.contains(key_of(sample));
  }

 private:
  // A thread's rows that begin at one moment differ in their states.
  using Key = std::tuple<uint32_t, Nanoseconds, profile::CpuState>;
  static Key key_of(const profile::Sample& sample) {
    return {sample.thread.value, sample.start, sample.cpu_state};
  }

  std::set<Key> known_;
};

}  // namespace phlox::view
