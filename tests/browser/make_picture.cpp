// Draws a picture of a tree that a browser test wrote down, without any recording:
//
//   make_picture OUT.svg < DESCRIPTION
//
// Lines of tab-separated fields: "title WORDS", "subtitle WORDS", "quality WORDS", "warning WORDS", "unit
// samples", "prune NODES", and "stack WEIGHT SAMPLES FRAME...", root first, a frame being
// "NAME|MODULE|FILE|LINE|KIND".
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "phlox/exporters/flame_picture.h"
#include "phlox/exporters/svg.h"
#include "support/call_tree_of.h"

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

phlox::view::Label label_of(const std::string& frame) {
  std::vector<std::string> parts = split(frame, '|');
  parts.resize(5);
  return {static_cast<phlox::profile::FrameKind>(std::atoi(parts[4].c_str())), parts[0], parts[2],
          std::atoi(parts[3].c_str()), parts[1]};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  phlox::exporters::FlamePicture picture;
  std::vector<phlox::test::StackLine> stacks;
  std::optional<phlox::view::CallTree> before;
  size_t prune = phlox::exporters::kMaximumNodes;
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> fields = split(line, '\t');
    if (fields[0] == "title") picture.title = fields[1];
    if (fields[0] == "subtitle") picture.subtitle = fields[1];
    if (fields[0] == "quality") picture.quality.push_back(fields[1]);
    if (fields[0] == "warning") picture.warning = fields[1];
    if (fields[0] == "unit") picture.weight = phlox::view::Weight::samples;
    if (fields[0] == "prune") prune = std::stoul(fields[1]);
    if (fields[0] == "before") {
      before = phlox::test::call_tree_of(stacks);
      stacks.clear();
    }
    if (fields[0] != "stack") continue;
    phlox::test::StackLine stack;
    stack.weight = std::stoll(fields[1]);
    stack.samples = std::stoull(fields[2]);
    for (size_t i = 3; i < fields.size(); ++i) stack.frames.push_back(label_of(fields[i]));
    stacks.push_back(std::move(stack));
  }
  picture.tree = phlox::test::call_tree_of(stacks);
  if (before) {
    phlox::exporters::fill_difference(picture, phlox::exporters::combine(*before, picture.tree, false),
                                      false);
  } else {
    phlox::exporters::make_displayable(picture.tree, false);
    picture.pruned = phlox::exporters::prune(picture.tree, picture.before, prune);
  }
  std::ofstream out(argv[1], std::ios::binary);
  phlox::exporters::write_flame_svg(picture, out);
  return out.flush() ? 0 : 1;
}
