// Bytes as a file without a name, for code that opens files: bytes read from a process or a recording.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "phlox/base/descriptor.h"

namespace phlox {

// None: the kernel has no room for it.
Descriptor memory_file(std::span<const std::byte> bytes);

// A path by which this process can open it, as long as the descriptor lives.
std::string path_of(const Descriptor& file);

}  // namespace phlox
