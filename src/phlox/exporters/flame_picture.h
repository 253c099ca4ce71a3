// What a flame graph shows, gathered and made safe to draw: words, displayable names, a tree that is not too
// large. Made from a Profile by make_picture; drawn by svg.h. Pure.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "phlox/exporters/difference.h"
#include "phlox/exporters/flame_layout.h"
#include "phlox/profile/view.h"

namespace phlox::exporters {

// A node of an embedded tree takes about 20 bytes: files stay below some 10 MB, which browsers open within a
// second.
inline constexpr size_t kMaximumNodes = 200'000;

struct FlamePicture {
  std::string title;
  std::string subtitle;
  std::vector<std::string> quality;  // one line a recording
  std::string warning;               // empty: none
  profile::Weight weight = profile::Weight::wall;
  profile::CallTree tree;  // names are displayable; with parts, the reader may choose what is shown
  profile::Show show = profile::Show::everything;  // what the tree's weights are
  std::string left_out;                            // what `show` leaves out, in words
  std::vector<profile::CallNode>
      before;                   // of a difference: the same nodes with the weights of the other recording
  std::vector<int8_t> changes;  // of a difference: change_steps()
  LeftOut pruned;               // frames that are not in the tree, since it would be too large
};

// Makes every name displayable; where frames are lines, the line becomes part of the name that is drawn.
void make_displayable(profile::CallTree& tree, bool by_line);

// Makes the picture one of a difference.
void fill_difference(FlamePicture& picture, Difference difference, bool by_line, const Scales& scales = {});

// Takes the smallest subtrees out until no more than `maximum` nodes are left beside one marker node for each
// place where something was taken out; totals stay as they are. `before`: of a difference, pruned alike, a
// node being as large as its larger share; else empty. Returns what was taken out, its weight being the
// tree's.
LeftOut prune(profile::CallTree& tree, std::vector<profile::CallNode>& before, size_t maximum);

// The picture as JSON for the script (web/src/model/tree.ts and svg/flame_svg.ts say what is in it). Contains
// no '<',
// '>' or '&', so that it can stand in XML and HTML as it is.
void write_picture_json(const FlamePicture& picture, std::ostream& out);

}  // namespace phlox::exporters
