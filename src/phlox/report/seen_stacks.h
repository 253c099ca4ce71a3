// The stacks of the chosen samples as a tree, and the function and line of each node. analysis.cpp makes it
// and adds weights up over it; sampling_error.cpp walks it. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace phlox::report {

// The function and the line of each frame. 0: a marker.
struct Items {
  std::vector<uint32_t> function;  // by frame id
  std::vector<uint32_t> line;
  uint32_t functions = 0;
  uint32_t lines = 0;
};

// The sampled stacks with their meaning: parents before children, 0 the root of all.
struct Tree {
  std::vector<uint32_t> parent;
  std::vector<uint32_t> frame;
  // The function (line) that a node adds to the totals: 0 if the same one is further out already.
  std::vector<uint32_t> function;
  std::vector<uint32_t> line;
  // The node of the innermost Python frame; in a stack without one, the node itself.
  std::vector<uint32_t> owner;
  std::vector<uint32_t> native;  // the innermost native frame below that; 0: none
  std::vector<uint8_t> foreign;  // StackPlace::foreign
};

}  // namespace phlox::report
