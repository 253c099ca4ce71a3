#include "phlox/exporters/recursion.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/call_tree_of.h"

namespace phlox::exporters {
namespace {

// "name" of what enters its function, "(name)" of what does not; "!" behind it: the call is under way too.
std::string words(const view::CallTree& tree) {
  std::vector<uint32_t> function_of(tree.labels.size());
  std::iota(function_of.begin(), function_of.end(), 0U);
  const std::vector<Entered> entered = find_entered(tree, function_of);
  std::string text;
  for (size_t i = 1; i < tree.nodes.size(); ++i) {
    const std::string& name = tree.labels[tree.nodes[i].label].name;
    text += (text.empty() ? "" : " ") + (entered[i].function ? name : "(" + name + ")");
    if (!entered[i].call) text += "!";
  }
  return text;
}

TEST(recursion, the_outermost_frame_of_a_function_enters_it) {
  EXPECT_EQ(words(test::call_tree_of_text({"main;fib;fib;fib;leaf 3"})), "main fib (fib) (fib)! leaf");
}

TEST(recursion, functions_that_call_each_other) {
  EXPECT_EQ(words(test::call_tree_of_text({"even;odd;even;odd;leaf 3"})), "even odd (even) (odd)! leaf");
}

TEST(recursion, a_function_on_another_branch_is_entered_again) {
  EXPECT_EQ(words(test::call_tree_of_text({"main;a;b 1", "main;b;a 1"})), "main a b b a");
}

TEST(recursion, a_tree_without_frames) {
  EXPECT_EQ(words(test::call_tree_of({})), "");
}

}  // namespace
}  // namespace phlox::exporters
