// CallTrees made by hand: one stack per line, as in the collapsed format without escaping.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/view/view.h"

namespace phlox::test {

struct StackLine {
  std::vector<view::Label> frames;  // root first, without the root "all"
  int64_t weight = 0;
  uint64_t samples = 1;
};

// A Python function of a module: file "/app/MODULE.py", line 1.
view::Label python_label(const std::string& name, const std::string& module = "app");

// Guarantees the same as build_call_tree: parents before children, children ordered by name, totals filled
// in.
view::CallTree call_tree_of(const std::vector<StackLine>& lines);

// Lines such as "main;work 3", one sample per unit of weight.
view::CallTree call_tree_of_text(const std::vector<std::string>& lines);

}  // namespace phlox::test
