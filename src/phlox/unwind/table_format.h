// An unwind table as the bytes of a file, and back: the files of TableCache. Only for this machine and this
// version: numbers are stored as in memory, and a file of another form is refused, never converted. The bytes
// are hostile: a table that parse_table() returns needs no further check.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "phlox/unwind/unwind_table.h"

namespace phlox::unwind {

// The bytes that parse_table() accepts.
std::vector<std::byte> table_bytes(const UnwindTable& table);
// nullptr: the bytes are not a table of this version.
std::unique_ptr<UnwindTable> parse_table(std::span<const std::byte> bytes);

}  // namespace phlox::unwind
