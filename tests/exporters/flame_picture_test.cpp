#include "phlox/exporters/flame_picture.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "phlox/exporters/svg.h"
#include "support/call_tree_of.h"

namespace phlox::exporters {
namespace {

using test::call_tree_of;
using test::call_tree_of_text;
using test::python_label;

// Not a difference.
std::vector<view::CallNode> none;

std::string json_of(const view::CallTree& tree) {
  FlamePicture picture;
  picture.title = "</script>&";
  picture.tree = tree;
  std::ostringstream out;
  write_picture_json(picture, out);
  return out.str();
}

TEST(flame_picture, json_is_what_the_script_reads) {
  view::CallTree tree = call_tree_of({{{python_label("main"), python_label("loads", "json")}, 7, 2}});
  EXPECT_EQ(json_of(tree),
            R"({"title":"\u003c/script\u003e\u0026","subtitle":"","quality":[],"warning":"","unit":"ns",)"
            R"("pruned":{"frames":0,"weight":0},"tree":{"files":["","/app/app.py","/app/json.py"],)"
            R"("modules":["","app","json"],"labels":[["all",0,0,0,3],["main",1,1,1,0],["loads",2,1,2,0]],)"
            R"("parent":[0,0,1],"label":[0,1,2],"self":[0,0,7],"samples":[2,2,2]}})");
}

TEST(flame_picture, json_has_full_names_and_the_parts_that_a_reader_chooses_from) {
  view::Label label{profile::FrameKind::native, "Op::run", "", 0, "app", "app::Op<T>::run"};
  view::CallTree tree = call_tree_of({{{label}, 7, 2}});
  tree.parts.resize(2);
  tree.parts[1][0] = {7, 2};
  tree.parts[1][2] = {90, 9};
  const std::string json = json_of(tree);
  EXPECT_NE(json.find(R"(["Op::run",0,0,1,1,"app::Op\u003cT\u003e::run"])"), std::string::npos) << json;
  EXPECT_NE(
      json.find(
          R"("parts":{"computing":{"self":[0,7],"samples":[0,2]},"waiting":{"self":[0,0],"samples":[0,0]},)"
          R"("waiting_for_work":{"self":[0,90],"samples":[0,9]},"waiting_for_others":{"self":[0,0],"samples":[0,0]},)"
          R"("waiting_unknown":{"self":[0,0],"samples":[0,0]}})"),
      std::string::npos)
      << json;
}

// Of two that are as small in what is shown, the one that is large in everything stays.
TEST(flame_picture, pruning_keeps_what_another_choice_shows) {
  view::CallTree tree = call_tree_of_text({"a;x 1", "a;y 1", "b 50"});
  tree.parts.resize(tree.nodes.size());
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    tree.parts[i][0].self = tree.nodes[i].self;
    if (tree.labels[tree.nodes[i].label].name == "y") tree.parts[i][2] = {1000, 3};
    if (tree.labels[tree.nodes[i].label].name == "x") tree.parts[i][2] = {7, 3};
  }
  prune(tree, none, 4);
  ASSERT_EQ(tree.parts.size(), tree.nodes.size());
  int64_t sum = 0;
  bool has_y = false, has_x = false;
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    sum += tree.parts[i][2].self;
    has_y = has_y || tree.labels[tree.nodes[i].label].name == "y";
    has_x = has_x || tree.labels[tree.nodes[i].label].name == "x";
  }
  EXPECT_EQ(sum, 1007);
  EXPECT_TRUE(has_y);
  EXPECT_FALSE(has_x);
}

TEST(flame_picture, small_tree_is_not_pruned) {
  view::CallTree tree = call_tree_of_text({"a 1", "b 2"});
  EXPECT_EQ(prune(tree, none, 3).frames, 0U);
  EXPECT_EQ(tree.nodes.size(), 3U);
}

TEST(flame_picture, pruning_takes_the_smallest_and_leaves_a_marker) {
  view::CallTree tree = call_tree_of_text({"a;x 1", "a;y 2", "b 50"});
  LeftOut out = prune(tree, none, 3);
  EXPECT_EQ(out.frames, 2U);
  EXPECT_EQ(out.weight, 3);
  ASSERT_EQ(tree.nodes.size(), 4U);
  EXPECT_EQ(tree.labels[tree.nodes[3].label].kind, profile::FrameKind::marker);
  EXPECT_EQ(tree.nodes[3].parent, 1U);
  EXPECT_EQ(tree.nodes[3].total, 3);
  EXPECT_EQ(tree.nodes[3].samples, 3U);
}

TEST(flame_picture, pruning_keeps_every_total) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> lines;
    for (size_t count = random() % 40 + 1; lines.size() < count;) {
      std::string line = "f" + std::to_string(random() % 4);
      for (size_t depth = random() % 6; depth > 0; --depth) line += ";f" + std::to_string(random() % 4);
      lines.push_back(line + " " + std::to_string(random() % 100));
    }
    view::CallTree tree = call_tree_of_text(lines);
    size_t before = tree.nodes.size();
    size_t maximum = random() % before + 1;
    LeftOut out = prune(tree, none, maximum);
    std::vector<int64_t> sums(tree.nodes.size(), 0);
    size_t markers = 0;
    for (size_t i = tree.nodes.size(); i-- > 0;) {
      sums[i] += tree.nodes[i].self;
      ASSERT_EQ(sums[i], tree.nodes[i].total);
      if (i > 0) {
        ASSERT_LT(tree.nodes[i].parent, i);
        sums[tree.nodes[i].parent] += sums[i];
      }
      markers += tree.labels[tree.nodes[i].label].name.starts_with("(frames too small");
    }
    ASSERT_EQ(tree.nodes[0].total, tree.total);
    ASSERT_EQ(tree.nodes.size() - markers + out.frames, before);
    ASSERT_LE(tree.nodes.size() - markers, std::max<size_t>(maximum, 1));
  }
}

std::string svg_of(const FlamePicture& picture) {
  std::ostringstream out;
  write_flame_svg(picture, out);
  return out.str();
}

TEST(svg, static_picture_of_a_small_tree) {
  FlamePicture picture;
  picture.title = "app.py";
  picture.subtitle = "what";
  picture.quality = {"how good"};
  picture.tree = call_tree_of({{{python_label("main"), python_label("a<b>")}, 3'000'000'000, 30},
                               {{python_label("main")}, 1'000'000'000, 10}});
  std::string text = svg_of(picture);
  size_t from = text.find("<g id=\"static\">");
  size_t to = text.find("<script");
  ASSERT_NE(from, std::string::npos);
  EXPECT_EQ(text.substr(from, to - from),
            R"(<g id="static">
<rect class="paper" width="100%" height="100%"/>
<text class="title" x="10" y="30">app.py</text>
<text class="sub" x="10" y="49">what</text>
<text class="small" x="10" y="65">how good</text>
<g class="b" data-n="0"><title>all&#10;100.0 % of all, 4.00 s, 40 samples</title><rect class="m" x="10" y="113" width="1179.5" height="17" rx="2"/><text x="14" y="125.5">all</text></g>
<g class="b" data-n="1"><title>main (/app/app.py:1)&#10;100.0 % of all, 4.00 s, 40 samples</title><rect class="p6b" x="10" y="95" width="1179.5" height="17" rx="2"/><text x="14" y="107.5">main</text></g>
<g class="b" data-n="2"><title>a&lt;b&gt; (/app/app.py:1)&#10;75.0 % of all, 3.00 s, 30 samples</title><rect class="p6b" x="10" y="77" width="884.5" height="17" rx="2"/><text x="14" y="89.5">a&lt;b&gt;</text></g>
</g>
)");
}

TEST(svg, same_input_gives_the_same_bytes) {
  FlamePicture picture;
  picture.tree = call_tree_of_text({"a;b 3", "c 4"});
  EXPECT_EQ(svg_of(picture), svg_of(picture));
}

TEST(svg, refers_to_nothing_outside_itself) {
  FlamePicture picture;
  picture.tree = call_tree_of_text({"a;b 3"});
  std::string text = svg_of(picture);
  for (size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at + 1)) {
    // Names of XML namespaces are no addresses.
    EXPECT_TRUE(text.substr(at).starts_with("://www.w3.org/2000/svg") ||
                text.substr(at).starts_with("://www.w3.org/1999/xhtml"))
        << text.substr(at, 60);
  }
}

}  // namespace
}  // namespace phlox::exporters
