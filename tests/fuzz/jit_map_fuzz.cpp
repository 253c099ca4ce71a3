// Any perf map or jitdump: no crash, no endless loop, and what is found lies where it was said to.
#include <cstdlib>
#include <cstring>

#include "phlox/symbols/jit_map.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox;
  if (size < 9) return 0;
  uint64_t address = 0;
  std::memcpy(&address, data + 1, 8);
  symbols::JitMap map;
  if ((data[0] & 1) != 0) map.add_jitdump(std::as_bytes(std::span(data + 9, size - 9)));
  if ((data[0] & 2) != 0) map.add_perf_map({reinterpret_cast<const char*>(data + 9), size - 9});
  const auto found = map.find(RemoteAddress(address));
  if (found && (found->name.empty() || found->offset > address)) std::abort();
  // Kept for that address alone, it says the same, unless code is moved: parts of what was written over are
  // distinguished only where they are needed.
  symbols::JitMap one({RemoteAddress(address)});
  if ((data[0] & 1) != 0) one.add_jitdump(std::as_bytes(std::span(data + 9, size - 9)));
  if ((data[0] & 2) != 0) one.add_perf_map({reinterpret_cast<const char*>(data + 9), size - 9});
  const auto again = one.find(RemoteAddress(address));
  if ((data[0] & 1) == 0 && (found.has_value() != again.has_value() ||
                             (found && (found->name != again->name || found->offset != again->offset))))
    std::abort();
  return 0;
}
