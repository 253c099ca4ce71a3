// The format that cProfile dumps and pstats.Stats loads: a marshalled dictionary of functions, with their
// callers. For pstats, snakeviz, gprof2dot, tuna. docs/formats.md is the reference.
#pragma once

#include <ostream>

#include "phlox/view/view.h"

namespace phlox::exporters {

// Seconds, or samples if these are the tree's weight. The number of calls is not known: 0.
void write_pstats(const view::CallTree& tree, view::Weight weight, std::ostream& out);

}  // namespace phlox::exporters
