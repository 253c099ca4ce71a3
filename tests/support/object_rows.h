// Where the fields of code objects, strings, dicts and the other objects of data sit, for tests. Not whole
// rows: no runtime, threads, frames.
#pragma once

#include <vector>

#include "phlox/python/layout.h"

namespace phlox::test {

const std::vector<python::Layout>& object_rows();

}  // namespace phlox::test
