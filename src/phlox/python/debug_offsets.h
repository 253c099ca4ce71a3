// _Py_DebugOffsets: the offsets that a CPython of 3.13 and later states itself, at the start of _PyRuntime
// (Include/internal/pycore_debug_offsets.h). They replace those of the version's row, so that a patch release
// or a build option that moved a field is still read right. Pure: takes bytes, which may hold anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "phlox/base/result.h"
#include "phlox/python/layout.h"

namespace phlox::python {

inline constexpr char kDebugCookie[] = "xdebugpy";

// The first words, which are the same in every version that has them.
struct DebugHeader {
  static constexpr size_t kSize = 24;
  uint32_t version = 0;  // PY_VERSION_HEX
  bool free_threaded = false;
};
// nothing: the cookie or the words after it are invalid.
std::optional<DebugHeader> parse_debug_header(std::span<const std::byte> bytes);

// Bytes of the largest _Py_DebugOffsets that is known.
size_t debug_offsets_size();

// Puts the words in place of the row's fields. A field that the row does not have stays absent. Nothing is
// changed if a word cannot be an offset: beyond its struct, beyond any struct, misaligned. Error:
// unsupported_python, naming the field. A version newer than the table is read as the newest known one.
Result<void> apply_debug_offsets(std::span<const std::byte> bytes, Layout& layout);

}  // namespace phlox::python
