// Two call trees as one: every frame of either, with both weights and their difference. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "phlox/view/view.h"

namespace phlox::exporters {

// `after.nodes[i]` and `before[i]` are one call path of the program. Labels are after's if it has the frame.
struct Difference {
  view::CallTree after;
  std::vector<view::CallNode> before;
};

// Frames of two recordings are the same if kind, name, module, last part of the file's path, and, where
// frames are lines, the line are the same. The rest of the path and the first line of a function change with
// every release and installation. Totals are those of the two trees; children are ordered by name.
Difference combine(const view::CallTree& before, const view::CallTree& after, bool by_line);

// The divisor of a weight of either side: 1, or the seconds of its recording.
struct Scales {
  double before = 1, after = 1;
};

// For each node how much more it took (1 to 5) or less (-1 to -5), with 5 for the greatest change of all; 0:
// no difference found. A difference counts if it is more than a tenth of the node, more than a hundredth of
// the whole, and more than sampling causes in one of a hundred comparisons (by the variance of a coin toss,
// which that of samples in time order never exceeds).
std::vector<int8_t> change_steps(const Difference& difference, const Scales& scales = {});

}  // namespace phlox::exporters
