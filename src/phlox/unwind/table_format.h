// An unwind table as the bytes of a file, and back: what TableCache keeps. Only for files of this machine and
// this version: numbers lie as in memory, and a file of another form is refused, never converted. The bytes
// are taken for hostile: a table that comes back can be looked into without a further check.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "phlox/unwind/unwind_table.h"

namespace phlox::unwind {

// Exactly what parse_table() takes back.
std::vector<std::byte> table_bytes(const UnwindTable& table);
// nullptr: the bytes are not a table of this version.
std::unique_ptr<UnwindTable> parse_table(std::span<const std::byte> bytes);

}  // namespace phlox::unwind
