// A thread that has ended and is still listed: the first one of a process whose other threads run on.
#pragma once

#include "phlox/process/thread_probe.h"

namespace phlox::process {

// The kernel shows neither its call nor its registers. Every other thread that does not run has a stack
// pointer.
inline bool has_ended(const BlockedIn& in) {
  return !in.running && in.number == -1 && in.stack_pointer == 0 && in.instruction_pointer == 0;
}

}  // namespace phlox::process
