#include "phlox/exporters/difference.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "support/call_tree_of.h"

namespace phlox::exporters {
namespace {

using test::call_tree_of;
using test::call_tree_of_text;
using test::python_label;

// "main;work" -> (before, after)
std::map<std::string, std::pair<int64_t, int64_t>> totals(const Difference& difference) {
  std::map<std::string, std::pair<int64_t, int64_t>> found;
  std::vector<std::string> paths;
  for (size_t i = 0; i < difference.before.size(); ++i) {
    const view::CallNode& node = difference.after.nodes[i];
    paths.push_back(i == 0 ? "" : paths[node.parent] + "/" + difference.after.labels[node.label].name);
    found[paths.back()] = {difference.before[i].total, node.total};
  }
  return found;
}

TEST(difference, frames_of_either_tree_are_there_once) {
  Difference difference = combine(call_tree_of_text({"main;old 3", "main;both 4"}),
                                  call_tree_of_text({"main;both 5", "main;fresh 6"}), false);
  EXPECT_EQ(totals(difference),
            (std::map<std::string, std::pair<int64_t, int64_t>>{{"", {7, 11}},
                                                                {"/main", {7, 11}},
                                                                {"/main/old", {3, 0}},
                                                                {"/main/both", {4, 5}},
                                                                {"/main/fresh", {0, 6}}}));
}

TEST(difference, function_that_moved_within_its_file_is_the_same) {
  view::Label was{profile::FrameKind::python, "work", "/old/venv/app.py", 10, "app"};
  view::Label is{profile::FrameKind::python, "work", "/new/app.py", 12, "app"};
  Difference difference = combine(call_tree_of({{{was}, 1}}), call_tree_of({{{is}, 2}}), false);
  ASSERT_EQ(difference.before.size(), 2U);
  EXPECT_EQ(difference.after.labels[1].line, 12);
  EXPECT_EQ(combine(call_tree_of({{{was}, 1}}), call_tree_of({{{is}, 2}}), true).before.size(), 3U);
}

TEST(difference, empty_recordings_can_be_compared) {
  EXPECT_EQ(combine({}, {}, false).before.size(), 0U);
  EXPECT_EQ(combine(call_tree_of_text({}), call_tree_of_text({"a 1"}), false).before.size(), 2U);
}

TEST(difference, change_beyond_chance_has_its_sign_and_size) {
  view::CallTree before = call_tree_of_text({"a 5000", "b 4000", "c 1000"});
  view::CallTree after = call_tree_of_text({"a 5000", "b 1000", "c 4000"});
  EXPECT_EQ(change_steps(combine(before, after, false)), (std::vector<int8_t>{0, 0, -5, 5}));
}

TEST(difference, larger_share_of_a_smaller_whole_is_no_change) {
  const view::CallTree before = call_tree_of_text({"a 5000", "b 5000"});
  const view::CallTree after = call_tree_of_text({"a 5000"});
  EXPECT_EQ(change_steps(combine(before, after, false)), (std::vector<int8_t>{0, 0, -5}));
  // In each second of a recording of half the length it is one.
  EXPECT_EQ(change_steps(combine(before, after, false), {0.0001, 0.0002}), (std::vector<int8_t>{0, 5, -5}));
}

TEST(difference, small_change_next_to_a_big_one_is_visible) {
  view::CallTree before = call_tree_of_text({"a 500000", "b 450000", "c 50000"});
  view::CallTree after = call_tree_of_text({"a 900000", "b 35000", "c 65000"});
  EXPECT_EQ(change_steps(combine(before, after, false)), (std::vector<int8_t>{0, 5, -5, 1}));
}

// The same program twice: 1 % of the frames may cross the 99 % bound.
TEST(difference, chance_has_no_colour) {
  std::mt19937 random(3);
  std::discrete_distribution<int> pick({30, 25, 15, 10, 8, 5, 3, 2, 1, 1});
  int coloured = 0;
  int frames = 0;
  for (int round = 0; round < 200; ++round) {
    view::CallTree trees[2];
    for (view::CallTree& tree : trees) {
      std::vector<int> counts(10, 0);
      for (int i = 0; i < 5000; ++i) ++counts[static_cast<size_t>(pick(random))];
      std::vector<std::string> lines;
      for (int i = 0; i < 10; ++i)
        lines.push_back("f" + std::to_string(i) + " " + std::to_string(counts[static_cast<size_t>(i)]));
      tree = call_tree_of_text(lines);
    }
    for (int8_t step : change_steps(combine(trees[0], trees[1], false))) {
      ++frames;
      coloured += step != 0;
    }
  }
  EXPECT_LT(coloured, frames * 2 / 100);
}

TEST(difference, weights_of_both_are_kept_in_any_pair_of_trees) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    view::CallTree trees[2];
    for (view::CallTree& tree : trees) {
      std::vector<std::string> lines;
      for (size_t count = random() % 20; lines.size() < count;) {
        std::string line = "f" + std::to_string(random() % 3);
        for (size_t depth = random() % 5; depth > 0; --depth) line += ";f" + std::to_string(random() % 3);
        lines.push_back(line + " " + std::to_string(random() % 50));
      }
      tree = call_tree_of_text(lines);
    }
    Difference difference = combine(trees[0], trees[1], false);
    using Nodes = std::vector<view::CallNode>;
    for (const Nodes* nodes :
         std::initializer_list<const Nodes*>{&difference.before, &difference.after.nodes}) {
      std::vector<int64_t> sums(nodes->size(), 0);
      for (size_t i = nodes->size(); i-- > 0;) {
        sums[i] += (*nodes)[i].self;
        ASSERT_EQ(sums[i], (*nodes)[i].total);
        if (i > 0) sums[(*nodes)[i].parent] += sums[i];
      }
    }
    ASSERT_EQ(difference.before[0].total, trees[0].total);
    ASSERT_EQ(difference.after.nodes[0].total, trees[1].total);
  }
}

}  // namespace
}  // namespace phlox::exporters
