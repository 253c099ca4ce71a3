// Which processes there are, and which started which. Used to say what runs beside a target, and to find the
// Python that a launched program starts. Reads /proc; opens no memory.
#pragma once

#include <sys/types.h>

#include <vector>

namespace phlox::target {

// All that /proc lists, by id.
std::vector<pid_t> read_processes();
// By id. A child whose parent ended belongs to init, or to a subreaper.
std::vector<pid_t> read_children(pid_t pid);
// Children before their own children.
std::vector<pid_t> read_descendants(pid_t pid);

}  // namespace phlox::target
