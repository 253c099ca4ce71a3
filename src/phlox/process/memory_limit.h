// How much of its memory limit a process's control group uses (Documentation/admin-guide/cgroup-v2.rst,
// cgroup-v1/memory.rst). Parsers are pure; only read_ and find_ open files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phlox::process {

// A group on the way up that has a limit.
struct MemoryGroup {
  std::string folder;
  bool unified = false;  // version 2
  friend auto operator<=>(const MemoryGroup&, const MemoryGroup&) = default;
};
// Empty: no group of the process has a limit, or it is not visible.
std::vector<MemoryGroup> find_memory_groups(pid_t pid);

struct MemoryUse {
  uint64_t used = 0, limit = 0;
  double share() const { return limit > 0 ? double(used) / double(limit) : 0; }
};
// `used` does not include files that the kernel can drop from its cache at once (inactive_file), as
// Kubernetes counts. None: it has no limit any more, or cannot be read.
std::optional<MemoryUse> read_memory_use(const MemoryGroup& group);

// Bytes; none: "max", or more than any machine has, which is version 1's word for it.
std::optional<uint64_t> parse_memory_limit(std::string_view text);
// Of memory.stat, its own and that of the groups below it.
uint64_t parse_inactive_file(std::string_view text, bool unified);

}  // namespace phlox::process
