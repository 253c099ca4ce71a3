// _Py_DebugOffsets: what a CPython of 3.13 and later says of itself, at the start of _PyRuntime
// (Include/internal/pycore_debug_offsets.h). Laid over the row of the version, so that a patch release or a
// build option that moved a field is read right all the same. Pure: takes bytes, which may hold anything.
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
// nothing: the cookie or the words after it are not what they must be.
std::optional<DebugHeader> parse_debug_header(std::span<const std::byte> bytes);

// Bytes of the largest _Py_DebugOffsets that is known.
size_t debug_offsets_size();

// Lays the words over the row's fields. A field that the row does not have stays absent. Nothing is changed
// when a word cannot be an offset: beyond its struct, beyond any struct, misaligned. Error:
// unsupported_python, naming the field. A version newer than the table is taken as the newest one known.
Result<void> apply_debug_offsets(std::span<const std::byte> bytes, Layout& layout);

}  // namespace phlox::python
