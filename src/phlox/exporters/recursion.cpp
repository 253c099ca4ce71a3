#include "phlox/exporters/recursion.h"

#include <tsl/robin_map.h>

#include "phlox/base/spread.h"

namespace phlox::exporters {

std::vector<Entered> find_entered(const view::CallTree& tree, const std::vector<uint32_t>& function_of) {
  const auto& nodes = tree.nodes;
  // A node's children are adjacent: the tree is in level order.
  std::vector<uint32_t> next_child(nodes.size() + 1, 0), last_child(nodes.size() + 1, 0);
  for (auto i = static_cast<uint32_t>(nodes.size()); i-- > 1;) {
    next_child[nodes[i].parent] = i;
    if (last_child[nodes[i].parent] == 0) last_child[nodes[i].parent] = i + 1;
  }
  std::vector<Entered> entered(nodes.size());
  tsl::robin_map<uint64_t, uint32_t, Spread> under_way;  // by function, or by caller << 32 | callee
  constexpr uint64_t kFunction = ~uint64_t{0} << 32;     // in place of a caller
  const auto function = [&](uint32_t node) { return uint64_t{function_of[nodes[node].label]}; };
  const auto call = [&](uint32_t node) { return function(nodes[node].parent) << 32 | function(node); };
  std::vector<uint32_t> path = {0};
  while (!path.empty()) {
    const uint32_t node = path.back();
    if (next_child[node] != last_child[node]) {
      const uint32_t child = next_child[node]++;
      entered[child].function = under_way[kFunction | function(child)]++ == 0;
      entered[child].call = under_way[call(child)]++ == 0;
      path.push_back(child);
      continue;
    }
    if (node != 0) {
      --under_way[kFunction | function(node)];
      --under_way[call(node)];
    }
    path.pop_back();
  }
  return entered;
}

}  // namespace phlox::exporters
