// Makes a page's tables smaller when they do not fit: first time loses its finest resolution, then the rarest
// stacks lose their inner frames, and the rarest waits who ended them. What was done is told, to be shown in
// the page. Pure.
#pragma once

#include <cstdint>

#include "phlox/exporters/page_tables.h"

namespace phlox::exporters {

struct PageMerge {
  Nanoseconds window = 0;  // order and gaps within so much time of a thread are lost; 0: nothing was merged
  double rare_share = 0;   // stacks with less than this of the time were cut; 0: none
  uint64_t stretches_before = 0, stretches_after = 0;
  uint64_t nodes_before = 0, nodes_after = 0;
  Nanoseconds cut_wall = 0;  // in stacks that were cut
};

// The mildest merge first. kMergeSteps of them.
inline constexpr size_t kMergeSteps = 14;

// step < kMergeSteps. Every sum by thread, state and (unless cut) stack stays what it was.
PageMerge merge_page(PageTables& tables, size_t step);

// What stands where frames were cut.
profile::Label left_out_label();

}  // namespace phlox::exporters
