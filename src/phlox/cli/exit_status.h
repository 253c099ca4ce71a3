// One documented exit status for each kind of error; docs/exit-status.md is the page for users, and a test
// compares the two. Above 110, so that they are not confused with the status of a recorded program, which
// `phlox record -- ...` passes through.
#pragma once

#include "phlox/base/result.h"

namespace phlox::cli {

inline constexpr int kSuccess = 0;
inline constexpr int kUsage = 2;                // as most commands do
inline constexpr int kThreshold = 3;            // phlox diff --fail-if: a condition holds
inline constexpr int kUnknownFunction = 4;      // phlox diff --fail-if: a condition can never hold
inline constexpr int kNothingSeen = 120;        // phlox record: no sample
inline constexpr int kCommandNotStarted = 127;  // as a shell does

constexpr int exit_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return kUsage;
    case ErrorKind::no_such_process:
      return 111;
    case ErrorKind::not_python:
      return 112;
    case ErrorKind::unsupported_python:
      return 113;
    case ErrorKind::permission:
      return 114;
    case ErrorKind::target_gone:
      return 115;
    case ErrorKind::target_state:
      return 116;
    case ErrorKind::output:
      return 117;
    case ErrorKind::input:
      return 118;
    case ErrorKind::launch:
      return kCommandNotStarted;
    case ErrorKind::system:
      return 119;
  }
  return 119;
}

}  // namespace phlox::cli
