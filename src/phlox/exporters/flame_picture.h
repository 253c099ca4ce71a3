// The contents of a flame graph, gathered and made safe to draw: texts, displayable names, a tree that is not
// too large. make_picture makes it from a Profile; svg.h draws it. Pure.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "phlox/exporters/difference.h"
#include "phlox/exporters/flame_layout.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

// A node of an embedded tree takes about 20 bytes: files stay below some 10 MB, which browsers open within a
// second.
inline constexpr size_t kMaximumNodes = 200'000;

struct FlamePicture {
  std::string title;
  std::string subtitle;
  std::vector<std::string> quality;  // one line for each recording
  std::string warning;               // empty: none
  view::Weight weight = view::Weight::wall;
  view::CallTree tree;  // names are displayable; with parts, the reader may choose what is shown
  view::Show show = view::Show::everything;  // the part of the time in the tree's weights
  std::string left_out;                      // the part that `show` leaves out, in words
  std::vector<view::CallNode>
      before;                   // of a difference: the same nodes with the weights of the other recording
  std::vector<int8_t> changes;  // of a difference: change_steps()
  LeftOut pruned;               // frames that were removed because the tree would be too large
};

// Makes every name displayable; where frames are lines, the line becomes part of the drawn name.
void make_displayable(view::CallTree& tree, bool by_line);

// Makes the picture one of a difference.
void fill_difference(FlamePicture& picture, Difference difference, bool by_line, const Scales& scales = {});

// Removes the smallest subtrees until no more than `maximum` nodes are left, plus one marker node for each
// place where something was removed; totals stay the same. `before`: of a difference, pruned in the same way,
// with the larger of its two shares as a node's size; otherwise empty. Returns the removed part, with its
// weight in the tree.
LeftOut prune(view::CallTree& tree, std::vector<view::CallNode>& before, size_t maximum);

// The picture as JSON for the script (web/src/model/tree.ts and svg/flame_svg.ts describe it). Contains no
// '<', '>' or '&', so it is valid in XML and HTML as it is.
void write_picture_json(const FlamePicture& picture, std::ostream& out);

}  // namespace phlox::exporters
