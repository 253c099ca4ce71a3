// Code of a file that was copied to memory without a file, at the addresses where it was: a program does that
// to have its code on huge pages (BOLT's --hugify, iodlr, Node's --use-largepages).
#pragma once

#include <vector>

#include "phlox/elf/elf_file.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/process/maps.h"

namespace phlox::process {

// Executable memory without a file that lies between two mappings of the module, without a gap. `maps`: all
// of the process, sorted.
std::vector<Mapping> moved_code_of(const std::vector<Mapping>& maps, const Module& module);

// Whether it holds what the file has there, judged by a sample of its pages: a JIT compiler may have put its
// own code between a library's segments.
bool holds_code_of(const Mapping& mapping, const elf::ElfFile& elf, uint64_t bias,
                   memory::RemoteMemory& memory);

}  // namespace phlox::process
