// The line of an instruction, for every form of line table that CPython has had. Pure, bounded by the table's
// size; the table comes from a target's memory and may hold anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "phlox/base/address.h"
#include "phlox/python/layout.h"

namespace phlox::python {

// The place of a frame in its code, as line_of() needs it: bytes from the first instruction, negative if the
// frame has not started. `raw`: the frame's own value: a pointer (3.11+), or f_lasti.
int32_t instruction_offset(const Traits& traits, RemoteAddress first_instruction, uint64_t raw);

// The line of the instruction that starts at or spans byte `offset`. Not started: the first line. 0: no line
// (the compiler made the instruction up, the offset is beyond the code, or the table is broken).
int32_t line_of(LineTable kind, std::span<const std::byte> table, int32_t first_line, int32_t offset);

}  // namespace phlox::python
