// What a recorder keeps of its capabilities once it has begun: it goes on reading processes and writing its
// file, with the rights of other users where a file is theirs, and mounts and loads nothing any more.
#pragma once

#include <cstdint>

namespace phlox::target {

// A set of capabilities, as /proc/PID/status shows it.
uint64_t kept_capabilities();

// Of the calling thread, and of those that it starts: gives up all others, for good. Harmless where it has
// none.
void give_up_other_capabilities();

}  // namespace phlox::target
