#include "support/call_tree_of.h"

#include <algorithm>
#include <map>

namespace phlox::test {
namespace {

struct Branch {
  uint32_t label = 0;
  int64_t self = 0;
  uint64_t samples = 0;
  std::map<std::pair<std::string, uint32_t>, size_t> children;  // (name, label) -> index into branches
};

}  // namespace

view::Label python_label(const std::string& name, const std::string& module) {
  return {profile::FrameKind::python, name, "/app/" + module + ".py", 1, module};
}

view::CallTree call_tree_of(const std::vector<StackLine>& lines) {
  view::CallTree tree;
  tree.labels.push_back({profile::FrameKind::marker, "all", "", 0, ""});
  std::vector<Branch> branches(1);
  for (const StackLine& line : lines) {
    size_t at = 0;
    branches[0].samples += line.samples;
    for (const view::Label& frame : line.frames) {
      auto found = std::find(tree.labels.begin() + 1, tree.labels.end(), frame);
      auto label = static_cast<uint32_t>(found - tree.labels.begin());
      if (found == tree.labels.end()) tree.labels.push_back(frame);
      auto [child, added] = branches[at].children.try_emplace({frame.name, label}, branches.size());
      at = child->second;
      if (added) branches.push_back({label, 0, 0, {}});
      branches[at].samples += line.samples;
    }
    branches[at].self += line.weight;
    tree.total += line.weight;
    tree.samples += line.samples;
  }
  std::vector<size_t> source = {0};
  std::vector<uint32_t> parents = {0};
  for (size_t i = 0; i < source.size(); ++i) {
    const Branch& branch = branches[source[i]];
    tree.nodes.push_back({parents[i], branch.label, branch.self, branch.self, branch.samples});
    for (const auto& [key, child] : branch.children) {
      source.push_back(child);
      parents.push_back(static_cast<uint32_t>(i));
    }
  }
  for (size_t i = tree.nodes.size(); i-- > 1;) tree.nodes[tree.nodes[i].parent].total += tree.nodes[i].total;
  return tree;
}

view::CallTree call_tree_of_text(const std::vector<std::string>& lines) {
  std::vector<StackLine> stacks;
  for (const std::string& line : lines) {
    StackLine stack;
    size_t space = line.rfind(' ');
    stack.weight = std::stoll(line.substr(space + 1));
    stack.samples = static_cast<uint64_t>(stack.weight);
    size_t at = 0;
    while (at <= space) {
      size_t end = std::min(line.find(';', at), space);
      if (end > at) stack.frames.push_back(python_label(line.substr(at, end - at)));
      at = end + 1;
    }
    stacks.push_back(std::move(stack));
  }
  return call_tree_of(stacks);
}

}  // namespace phlox::test
