// Address in memory minus address in the file, of the program that runs.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace phlox::test {

inline uint64_t load_bias() {
  uint64_t value = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<uint64_t*>(to) = info->dlpi_addr;
        return 1;
      },
      &value);
  return value;
}

}  // namespace phlox::test
