// Where a process has memory of its own: the pages in RAM of private, writable mappings without a file. For
// readers that search its objects: pages that nothing has touched are left out, which are most of a stack.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/base/result.h"
#include "phlox/process/maps.h"

namespace phlox::process {

struct PageRun {
  RemoteAddress start, end;
};

struct ResidentMemory {
  std::vector<PageRun> runs;  // ascending
  uint64_t bytes = 0;         // in them
  bool swapped = false;       // other pages of it are swapped out
  bool cut = false;           // there are more pages than the limit
};

// Whether objects may lie in that mapping.
bool is_own_memory(const Mapping& mapping);
// Adds the pages of a mapping from `start` on, by their entries of /proc/PID/pagemap
// (Documentation/admin-guide/mm/pagemap.rst).
void add_pages(ResidentMemory& memory, RemoteAddress start, std::span<const uint64_t> entries,
               uint64_t page_size, uint64_t most);
// `most`: limit in bytes.
Result<ResidentMemory> read_resident_memory(pid_t pid, uint64_t most);

}  // namespace phlox::process
