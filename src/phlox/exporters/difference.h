// Two call trees as one: every frame of either, with both weights, and how much its share changed. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "phlox/profile/view.h"

namespace phlox::exporters {

// `after.nodes[i]` and `before[i]` are one call path of the program. Labels are after's where it has the
// frame.
struct Difference {
  profile::CallTree after;
  std::vector<profile::CallNode> before;
};

// What makes frames of two recordings the same: kind, name, module, last part of the file's path, and, where
// frames are lines, the line. The rest of the path and the first line of a function change with every release
// and installation. Totals are those of the two trees; children are ordered by name.
Difference combine(const profile::CallTree& before, const profile::CallTree& after, bool by_line);

// For each node how much its share of its recording grew (1 to 5) or shrank (-1 to -5), the greatest change
// of all being 5; 0: no change, or one that sampling alone makes in one of a hundred comparisons of equal
// programs (by the binomial variance of the two shares, which is a lower bound: neighbouring samples are
// alike).
std::vector<int8_t> change_steps(const Difference& difference);

}  // namespace phlox::exporters
