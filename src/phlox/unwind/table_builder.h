// Builds a module's unwind table: reads the entries of its sections (frame_entries.h), lets the machine run
// each function's instructions (cfi_machine.h) and stores the rows flat. TableCache calls it once for each
// module. It opens nothing and walks no stack. The bytes are hostile: building ends after time and memory in
// proportion to their size.
#pragma once

#include <cstdint>
#include <span>

#include "phlox/elf/elf_file.h"
#include "phlox/unwind/frame_entries.h"
#include "phlox/unwind/unwind_table.h"

namespace phlox::unwind {

// From every section of the ELF file. A file without any gives an empty table.
UnwindTable build_table(const elf::ElfFile& file);
// Sections in order of preference: a range that an earlier one covers is not taken from a later one.
UnwindTable build_table(std::span<const FrameSection> sections, uint16_t machine);

}  // namespace phlox::unwind
