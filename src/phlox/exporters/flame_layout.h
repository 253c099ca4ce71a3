// The place of each box in the picture without a script: the whole tree, from the root.
// web/src/layout/flame.ts has the same rule, so that nothing moves when the script takes over; tests/browser
// compares the two. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "phlox/view/view.h"

namespace phlox::exporters {

struct LayoutOptions {
  double width = 1180;
  double min_width = 0.3;     // px; narrower boxes are left out
  size_t max_boxes = 20'000;  // min_width is doubled until no more boxes than this are left
  uint32_t max_depth = 512;   // rows below the root
};

struct FlameBox {
  uint32_t node = 0;
  uint32_t row = 0;  // 0: the root
  double x = 0;
  double width = 0;
};

struct LeftOut {
  uint64_t frames = 0;
  int64_t weight = 0;  // of the outermost of them: shown as empty in the picture
};

struct FlameLayout {
  std::vector<FlameBox> boxes;  // row by row
  uint32_t rows = 0;
  double min_width = 0;  // the value that was used
  LeftOut narrow;
  LeftOut deep;
};

// `nodes` as in a CallTree.
FlameLayout lay_out_flame(const std::vector<view::CallNode>& nodes, const LayoutOptions& options = {});

// To a hundredth of a pixel.
double round_pixels(double value);

}  // namespace phlox::exporters
