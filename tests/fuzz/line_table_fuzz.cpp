// Any table, any offset: no crash, no endless loop, no line below 0.
#include <cstdlib>
#include <cstring>

#include "phlox/python/line_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox::python;
  if (size < 9) return 0;
  int32_t first_line = 0, offset = 0;
  std::memcpy(&first_line, data + 1, 4);
  std::memcpy(&offset, data + 5, 4);
  const auto table = std::as_bytes(std::span(data + 9, size - 9));
  if (line_of(static_cast<LineTable>(data[0] & 3), table, first_line, offset) < 0) std::abort();
  return 0;
}
