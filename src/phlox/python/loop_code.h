// The address range of the interpreter loop's code in an executable or a library: frames with a pc in it run
// Python. Pure.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/elf/elf_file.h"

namespace phlox::python {

// Its .cold parts too, as image addresses [first, second); empty: no symbol has them.
using LoopCode = std::vector<std::pair<uint64_t, uint64_t>>;

LoopCode loop_code(const elf::ElfFile& file);
bool is_in(const LoopCode& loop, ImageAddress address);

}  // namespace phlox::python
