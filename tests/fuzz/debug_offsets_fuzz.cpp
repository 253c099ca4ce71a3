// Any _Py_DebugOffsets over any row: an error, or a layout whose offsets are bounded; and any text as maps
// and version.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "phlox/process/maps.h"
#include "phlox/python/debug_offsets.h"
#include "phlox/python/layout_table.h"
#include "phlox/python/version.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox::python;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  phlox::process::modules_of(phlox::process::parse_maps(text));
  find_version_text(text);
  find_version_constant(text, 3, 9);
  parse_version(text);
  if (size == 0) return 0;
  const auto rows = layouts();
  Layout layout = rows[data[0] % rows.size()];
  std::vector<std::byte> bytes(size + 16);
  std::memcpy(bytes.data(), kDebugCookie, 8);
  const uint64_t version = 0x030D00F0U + (uint64_t{data[0]} % 4 << 16);
  std::memcpy(bytes.data() + 8, &version, sizeof version);
  std::memcpy(bytes.data() + 16, data, size);
  if (!apply_debug_offsets(bytes, layout)) return 0;
  for (const Offset offset :
       {layout.runtime.interpreters_head, layout.thread.current_frame, layout.frame.previous,
        layout.gil_state.locked, layout.interpreter.gc_collecting}) {
    if (offset.present() && *offset >= (1U << 25)) std::abort();
  }
  return 0;
}
