// Names of wakers, as recordings, reports and pages have them. Pure.
#pragma once

#include <string_view>

#include "phlox/profile/model.h"

namespace phlox::profile {

// In place of a process: the timeout of the waiting call was over. No process has this name, because a
// process has its number after its name.
inline constexpr std::string_view kItsTimeout = "its timeout";
// The same, where threads without Python are not recorded.
inline constexpr std::string_view kThreadWithoutPython = "a thread that runs no Python";

// In recordings and for programs; empty: not known.
inline std::string_view waker_kind(const Waker& waker) {
  if (waker.thread || waker.other == kThreadWithoutPython) return "thread";
  if (waker.other.empty()) return {};
  return waker.other == kItsTimeout ? "timeout" : "process";
}

}  // namespace phlox::profile
