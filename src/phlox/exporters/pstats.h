// What cProfile dumps and pstats.Stats loads: a marshalled dictionary of functions, with their callers. For
// pstats, snakeviz, gprof2dot, tuna. docs/formats.md is the reference.
#pragma once

#include <ostream>

#include "phlox/profile/view.h"

namespace phlox::exporters {

// Seconds, or samples where these are the tree's weight. How often a function was called nobody counted: 0.
void write_pstats(const profile::CallTree& tree, profile::Weight weight, std::ostream& out);

}  // namespace phlox::exporters
