// Joins the samples of a long wait, the last of which knows the waker. Pure.
#pragma once

#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::view {

// Of one thread: a long wait has several rows, each of which begins where the one before it ends.
struct OngoingWait {
  profile::StackId stack;
  int16_t system_call = -1;
  Nanoseconds end = 0;
  bool is_over = true;

  // The thread's next row: returns whether it belongs to the same wait.
  bool take(const profile::Sample& sample);
};

// Whether nothing of the thread's time lies between two of its rows.
bool begins_at_the_end_of(const profile::Sample& sample, const profile::Sample& before);

// Blocked, but not for the GIL: gil_holders.h is for that.
bool is_ended_wait(const profile::Sample& sample);

// By sample: the waker of the wait that it belongs to. Empty: the recording knows none.
std::vector<profile::WakerId> wakers_of_whole_waits(const profile::Profile& profile);

// Whether waits have the length and the moment that the scheduler gave them. Otherwise the threads were
// sampled, and nothing is known about a wait between two samples.
bool waits_are_exact(const profile::Profile& profile);

}  // namespace phlox::view
