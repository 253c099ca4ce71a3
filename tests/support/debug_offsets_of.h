// _Py_DebugOffsets as a Python of this row (3.13+) would state them.
#pragma once

#include <cstddef>
#include <vector>

#include "phlox/python/layout.h"

namespace phlox::test {

std::vector<std::byte> debug_offsets_of(const python::Layout& row);

}  // namespace phlox::test
