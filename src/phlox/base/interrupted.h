// Repeats a call that a signal interrupted, up to a limit.
#pragma once

#include <cerrno>

namespace phlox {

// Signals do not interrupt this many calls in a row. Something else then refuses the call (a filter of system
// calls, a file system), and repeating it would never end.
inline constexpr int kMostInterrupted = 1000;

// The result of the call; errno is EINTR after kMostInterrupted calls.
template <class Call>
auto retried(Call&& call) {
  for (int interrupted = 1;; ++interrupted) {
    const auto done = call();
    if (done >= 0 || errno != EINTR || interrupted == kMostInterrupted) return done;
  }
}

}  // namespace phlox
