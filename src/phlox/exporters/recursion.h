// The nodes of a call tree that enter a function, or a call, that is not already running. Totals are added up
// from these. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "phlox/view/view.h"

namespace phlox::exporters {

struct Entered {
  bool function = false;  // no frame nearer to the root is of this function
  bool call = false;      // the same, for frames that the same function called
};

// By node. `function_of`: by label, the number of its function; labels may share one.
std::vector<Entered> find_entered(const view::CallTree& tree, const std::vector<uint32_t>& function_of);

}  // namespace phlox::exporters
