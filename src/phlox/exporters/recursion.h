// Which nodes of a call tree enter a function, or a call, that is not under way already: what its time with
// everything it called may be added up from. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "phlox/profile/view.h"

namespace phlox::exporters {

struct Entered {
  bool function = false;  // no frame nearer to the root is of this function
  bool call = false;      // none there is of it, called by the same function
};

// By node. `function_of`: by label, a number of the function that it is of; labels may share one.
std::vector<Entered> find_entered(const profile::CallTree& tree, const std::vector<uint32_t>& function_of);

}  // namespace phlox::exporters
