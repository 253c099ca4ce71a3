// Makes a page's tables smaller if they do not fit: first time loses its finest resolution, then the rarest
// stacks lose their inner frames, and the rarest waits their wakers. The page shows what was done. Pure.
#pragma once

#include <cstdint>

#include "phlox/exporters/page_tables.h"

namespace phlox::exporters {

struct PageMerge {
  // Order and gaps within this much of a thread's time are lost; 0: nothing was merged.
  Nanoseconds window = 0;
  double rare_share = 0;  // stacks with less than this share of the time were truncated; 0: none
  uint64_t spans_before = 0, spans_after = 0;
  uint64_t nodes_before = 0, nodes_after = 0;
  Nanoseconds cut_wall = 0;  // in truncated stacks
};

// The mildest merge first.
inline constexpr size_t kMergeSteps = 14;

// `step` is below kMergeSteps. Every sum by thread, state and (unless truncated) stack stays the same.
PageMerge merge_page(PageTables& tables, size_t step);

// The marker in place of the removed frames.
view::Label left_out_label();

}  // namespace phlox::exporters
