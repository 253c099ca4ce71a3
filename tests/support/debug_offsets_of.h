// _Py_DebugOffsets of a Python with this row (3.13+).
#pragma once

#include <cstddef>
#include <vector>

#include "phlox/python/layout.h"

namespace phlox::test {

std::vector<std::byte> debug_offsets_of(const python::Layout& row);

}  // namespace phlox::test
