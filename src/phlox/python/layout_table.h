// The rows of the version table.
#pragma once

#include <cstdint>
#include <span>

#include "phlox/python/layout.h"

namespace phlox::python {

std::span<const Layout> layouts();

struct Build {
  bool debug = false;
  bool free_threaded = false;
};
// The row for a version; nullptr: none.
const Layout* find_layout(uint8_t major, uint8_t minor, Build build = {});

}  // namespace phlox::python
