// The processes of the host, and their parents. Used to name the Pythons that run at the same time as a
// target, and to find the Python that a launched program starts. Reads /proc; opens no memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "phlox/base/descriptor.h"

namespace phlox::process {

// All that /proc lists, by id.
std::vector<pid_t> read_processes();
// By id. A child whose parent ended belongs to init, or to a subreaper.
std::vector<pid_t> read_children(pid_t pid);
// Children before their own children.
std::vector<pid_t> read_descendants(pid_t pid);

// Whether any process was born on this host (in our PID namespace), at the cost of one small file: the id
// that was given out last, to a process or a thread.
class Births {
 public:
  // Starts a thread for a moment: a file that does not show it (lxcfs has one that is seconds old) is not
  // trusted.
  Births();
  // None: not available here. Another value than before: a process was born.
  std::optional<uint64_t> last_id() const;

 private:
  Descriptor file_;
};

// From /proc/loadavg.
std::optional<uint64_t> parse_last_id(std::string_view text);

}  // namespace phlox::process
