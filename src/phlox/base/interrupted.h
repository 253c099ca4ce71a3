// Making a call again that a signal interrupted, with a limit.
#pragma once

#include <cerrno>

namespace phlox {

// A signal does not interrupt that many calls in a row. Then something else refuses the call (a filter of
// system calls, a file system), and trying on would never end.
inline constexpr int kMostInterrupted = 1000;

// What the call returned; errno says EINTR after kMostInterrupted calls.
template <class Call>
auto retried(Call&& call) {
  for (int interrupted = 1;; ++interrupted) {
    const auto done = call();
    if (done >= 0 || errno != EINTR || interrupted == kMostInterrupted) return done;
  }
}

}  // namespace phlox
