// Lists of CPUs as the kernel writes them ("0-3,8"; lib/bitmap.c: bitmap_parselist), both ways.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace phlox::process {

// Ascending; ends where the text is no longer a list.
std::vector<int> parse_cpu_list(std::string_view text);
std::string describe_cpus(const std::vector<int>& cpus);

// CPUs that an administrator reserves (isolcpus=, nohz_full=).
std::vector<int> read_kept_free_cpus();

}  // namespace phlox::process
