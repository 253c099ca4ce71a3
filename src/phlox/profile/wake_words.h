// What ended a wait, in the words of recordings, reports and pages. Pure.
#pragma once

#include <string_view>

#include "phlox/profile/model.h"

namespace phlox::profile {

// In place of a process: the time was over that the wait's own call had set. No process is called so, for a
// process has its number behind its name.
inline constexpr std::string_view kItsTimeout = "its timeout";
// As well, where threads without Python are not recorded.
inline constexpr std::string_view kThreadWithoutPython = "a thread that runs no Python";

// In recordings and for programs; empty: not known.
inline std::string_view wake_kind(const Wake& wake) {
  if (wake.thread || wake.other == kThreadWithoutPython) return "thread";
  if (wake.other.empty()) return {};
  return wake.other == kItsTimeout ? "timeout" : "process";
}

}  // namespace phlox::profile
