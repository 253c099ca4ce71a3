#include "phlox/exporters/difference.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "phlox/base/spread.h"

namespace phlox::exporters {
namespace {

using Key = std::tuple<profile::FrameKind, std::string_view, std::string_view, std::string_view, int32_t>;

Key key_of(const view::Label& label, bool by_line) {
  std::string_view file = label.file;
  // npos + 1 is 0: the whole name.
  file.remove_prefix(file.find_last_of("/\\") + 1);
  return {label.kind, label.whole_name(), label.module, file, by_line ? label.line : 0};
}

struct Merged {
  uint32_t parent = 0;
  const view::Label* label = nullptr;
  view::CallNode weights[2];  // before, after
};

enum Side : size_t { kBefore = 0, kAfter = 1 };

// Nodes of both trees by merged parent and key, in the order in which they were found.
class Merger {
 public:
  explicit Merger(bool by_line) : by_line_(by_line) { nodes_.emplace_back(); }

  void add(const view::CallTree& tree, Side side) {
    std::vector<uint32_t> keys;
    keys.reserve(tree.labels.size());
    for (const view::Label& label : tree.labels) {
      keys.push_back(
          keys_.try_emplace(key_of(label, by_line_), static_cast<uint32_t>(keys_.size())).first->second);
    }
    std::vector<uint32_t> index(tree.nodes.size(), 0);
    for (size_t i = 0; i < tree.nodes.size(); ++i) {
      const view::CallNode& node = tree.nodes[i];
      if (i > 0) index[i] = find(index[node.parent], keys[node.label]);
      Merged& merged = nodes_[index[i]];
      if (side == kAfter || merged.label == nullptr) merged.label = &tree.labels[node.label];
      merged.weights[side].self += node.self;
      merged.weights[side].total += node.total;
      merged.weights[side].samples += node.samples;
    }
  }

  const std::vector<Merged>& nodes() const { return nodes_; }

 private:
  uint32_t find(uint32_t parent, uint32_t key) {
    auto [at, added] = known_.try_emplace(uint64_t{parent} << 32 | key, static_cast<uint32_t>(nodes_.size()));
    if (added) nodes_.push_back({parent, nullptr, {}});
    return at->second;
  }

  bool by_line_;
  std::vector<Merged> nodes_;
  std::map<Key, uint32_t> keys_;
  tsl::robin_map<uint64_t, uint32_t, Spread> known_;
};

// Parents before children, children by name.
std::vector<uint32_t> reading_order(const std::vector<Merged>& nodes) {
  std::vector<std::vector<uint32_t>> children(nodes.size());
  for (uint32_t i = 1; i < nodes.size(); ++i) children[nodes[i].parent].push_back(i);
  std::vector<uint32_t> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    std::vector<uint32_t>& below = children[order[i]];
    std::stable_sort(below.begin(), below.end(),
                     [&](uint32_t a, uint32_t b) { return nodes[a].label->name < nodes[b].label->name; });
    order.insert(order.end(), below.begin(), below.end());
  }
  return order;
}

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// One side of a node: the compared value and its variance.
struct Weighed {
  double value = 0, variance = 0;
};

Weighed weighed(const view::CallNode& node, const view::CallNode& root, double scale) {
  const double p = share(node.total, root.total);
  const double whole = static_cast<double>(root.total) * scale;
  const double samples = static_cast<double>(std::max<uint64_t>(1, root.samples));
  return {static_cast<double>(node.total) * scale, whole * whole * p * (1 - p) / samples};
}

}  // namespace

Difference combine(const view::CallTree& before, const view::CallTree& after, bool by_line) {
  Merger merger(by_line);
  merger.add(before, kBefore);
  merger.add(after, kAfter);

  Difference difference;
  difference.after.total = after.total;
  difference.after.rejected = after.rejected;
  difference.after.samples = after.samples;
  std::vector<uint32_t> index(merger.nodes().size(), 0);
  std::map<const view::Label*, uint32_t> labels;
  for (uint32_t from : reading_order(merger.nodes())) {
    const Merged& merged = merger.nodes()[from];
    index[from] = static_cast<uint32_t>(difference.before.size());
    if (merged.label == nullptr) continue;  // two empty trees have no root
    auto [label, added] = labels.try_emplace(merged.label, static_cast<uint32_t>(labels.size()));
    if (added) difference.after.labels.push_back(*merged.label);
    for (Side side : {kBefore, kAfter}) {
      view::CallNode node = merged.weights[side];
      node.parent = index[merged.parent];
      node.label = label->second;
      (side == kBefore ? difference.before : difference.after.nodes).push_back(node);
    }
  }
  return difference;
}

std::vector<int8_t> change_steps(const Difference& difference, const Scales& scales) {
  constexpr double kQuantile = 2.58;  // of the normal distribution: 99 % lie within this on both sides
  constexpr double kOwn = 0.1, kWhole = 0.01;
  const std::vector<view::CallNode>& after = difference.after.nodes;
  const std::vector<view::CallNode>& before = difference.before;
  std::vector<double> changes(after.size(), 0);
  if (after.empty()) return {};
  const double whole = std::max(static_cast<double>(before[0].total) * scales.before,
                                static_cast<double>(after[0].total) * scales.after);
  double greatest = 0;
  for (size_t i = 1; i < after.size(); ++i) {
    const Weighed was = weighed(before[i], before[0], scales.before);
    const Weighed is = weighed(after[i], after[0], scales.after);
    const double change = is.value - was.value;
    const double least = std::max(kOwn * std::max(was.value, is.value), kWhole * whole);
    const double error = kQuantile * std::sqrt(was.variance + is.variance);
    if (std::fabs(change) > std::max(least, error)) changes[i] = change;
    greatest = std::max(greatest, std::fabs(changes[i]));
  }
  std::vector<int8_t> steps(after.size(), 0);
  for (size_t i = 1; i < after.size(); ++i) {
    if (changes[i] == 0) continue;
    // A square root keeps small changes visible next to a large one.
    double size = std::ceil(std::sqrt(std::fabs(changes[i]) / greatest) * 5 - 0.5);
    auto step = static_cast<int8_t>(std::clamp(size, 1.0, 5.0));
    steps[i] = changes[i] > 0 ? step : static_cast<int8_t>(-step);
  }
  return steps;
}

}  // namespace phlox::exporters
