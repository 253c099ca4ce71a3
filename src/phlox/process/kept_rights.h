// The capabilities that a recorder keeps once it has begun: it still reads processes and writes its file,
// with the rights of other users for files of theirs, and no longer mounts or loads anything.
#pragma once

#include <cstdint>

namespace phlox::process {

// A set of capabilities, as /proc/PID/status shows it.
uint64_t kept_capabilities();

// For the calling thread, and those that it starts: gives up all others, for good. Harmless if it has none.
void give_up_other_capabilities();

}  // namespace phlox::process
