// The writable memory of one module, which contains its interpreter's own words: read block by block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/process/maps.h"

namespace phlox::python {

// CPython's own .data and .bss have less than 2 MiB; a program that embeds it may have much of its own.
inline constexpr uint64_t kMostScanned = uint64_t{64} << 20;
inline constexpr uint64_t kScanBlock = uint64_t{4} << 20;

// Calls `visit(address, bytes)` for the module's writable memory, block by block with `overlap` bytes of the
// next. Stops when visit returns true.
template <class Visit>
void scan_writable(const process::Module& module, memory::RemoteMemory& memory, uint64_t overlap,
                   Visit visit) {
  uint64_t left = kMostScanned;
  std::vector<std::byte> block;
  for (const process::Mapping& mapping : module.mappings) {
    if (!mapping.writable || !mapping.readable) continue;
    for (uint64_t at = 0; at < mapping.end - mapping.start && left > 0; at += kScanBlock) {
      const uint64_t rest = mapping.end - mapping.start - at;
      block.resize(std::min({rest, kScanBlock + overlap, left}));
      left -= block.size();
      if (memory.read(mapping.start + at, block) &&
          visit(mapping.start + at, std::span<const std::byte>(block)))
        return;
    }
  }
}

}  // namespace phlox::python
