#include "support/debug_offsets_of.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "phlox/python/debug_offsets.h"

namespace phlox::test {

std::vector<std::byte> debug_offsets_of(const python::Layout& row) {
  std::vector<std::byte> bytes;
  const auto put = [&bytes](size_t at, uint64_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  const uint64_t gil = *row.interpreter.gil;
  // CPython counts the offsets of GIL fields from the interpreter. gc and gc.collecting add up to
  // gc_collecting.
#define SIZE(n) bytes.resize(n);
#define GC_COLLECTING(at) put(at, 0);
#define FIELD(s, f, at) \
  if (row.s.f.present()) put(at, *row.s.f + (std::string_view(#s) == "gil_state" ? gil : 0));
  switch (row.minor) {
    case 13:
#include "phlox/python/rows/debug_offsets-3.13.inc"
      break;
    case 14:
#include "phlox/python/rows/debug_offsets-3.14.inc"
      break;
    case 15:
#include "phlox/python/rows/debug_offsets-3.15.inc"
      break;
    default:
      throw std::logic_error("debug_offsets_of: no case for Python 3." + std::to_string(row.minor));
  }
#undef SIZE
#undef FIELD
#undef GC_COLLECTING
  std::memcpy(bytes.data(), python::kDebugCookie, 8);
  put(8, 0x03000000U | unsigned{row.minor} << 16 | 0xF0U);
  put(16, row.traits.free_threaded);
  return bytes;
}

}  // namespace phlox::test
