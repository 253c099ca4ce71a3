// Two call trees as one: every frame of either, with both weights, and how much they differ. Pure.
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

// What a weight of either side is compared by: 1, or one a second of its recording.
struct Scales {
  double before = 1, after = 1;
};

// For each node how much more it took (1 to 5) or less (-1 to -5), the greatest change of all being 5; 0: not
// seen to differ, by a tenth of itself, a hundredth of the whole, and more than sampling makes in one of a
// hundred comparisons (by the variance of a coin, which that of samples in the order of time never exceeds).
std::vector<int8_t> change_steps(const Difference& difference, const Scales& scales = {});

}  // namespace phlox::exporters
