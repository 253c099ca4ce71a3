#include "phlox/exporters/flame_layout.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace phlox::exporters {
namespace {

// Children of a node as linked lists, in order; 0 means none, since the root is no child.
struct Links {
  std::vector<uint32_t> first_child;
  std::vector<uint32_t> next_sibling;
  std::vector<uint64_t> frames;  // with weight, in the subtree
};

Links link(const std::vector<view::CallNode>& nodes) {
  Links links;
  links.first_child.assign(nodes.size(), 0);
  links.next_sibling.assign(nodes.size(), 0);
  links.frames.assign(nodes.size(), 0);
  for (size_t node = nodes.size(); node-- > 1;) {
    uint32_t parent = nodes[node].parent;
    links.next_sibling[node] = links.first_child[parent];
    links.first_child[parent] = static_cast<uint32_t>(node);
    if (nodes[node].total > 0) ++links.frames[node];
    links.frames[parent] += links.frames[node];
  }
  return links;
}

std::optional<FlameLayout> attempt(const std::vector<view::CallNode>& nodes, const Links& links,
                                   const LayoutOptions& options, double min_width) {
  FlameLayout done;
  done.min_width = min_width;
  done.rows = 1;
  double scale = nodes[0].total > 0 ? options.width / static_cast<double>(nodes[0].total) : 0;
  done.boxes.push_back({0, 0, 0, options.width});
  std::vector<double> offsets = {0};  // weight to the left of each box
  for (size_t i = 0; i < done.boxes.size(); ++i) {
    double offset = offsets[i];
    uint32_t row = done.boxes[i].row + 1;
    for (uint32_t child = links.first_child[done.boxes[i].node]; child != 0;
         child = links.next_sibling[child]) {
      if (nodes[child].total <= 0) continue;
      auto weight = static_cast<double>(nodes[child].total);
      if (weight * scale < min_width || row > options.max_depth) {
        LeftOut& out = weight * scale < min_width ? done.narrow : done.deep;
        out.frames += links.frames[child];
        out.weight += nodes[child].total;
      } else {
        if (done.boxes.size() >= options.max_boxes) return std::nullopt;
        done.boxes.push_back({child, row, offset * scale, weight * scale});
        offsets.push_back(offset);
        done.rows = std::max(done.rows, row + 1);
      }
      offset += weight;
    }
  }
  return done;
}

}  // namespace

FlameLayout lay_out_flame(const std::vector<view::CallNode>& nodes, const LayoutOptions& options) {
  if (nodes.empty()) return {};
  Links links = link(nodes);
  for (double min_width = options.min_width;; min_width *= 2) {
    if (std::optional<FlameLayout> done = attempt(nodes, links, options, min_width)) return *std::move(done);
  }
}

double round_pixels(double value) {
  return std::floor(value * 100 + 0.5) / 100;
}

}  // namespace phlox::exporters
