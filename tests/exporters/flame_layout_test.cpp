#include "phlox/exporters/flame_layout.h"

#include <gtest/gtest.h>

#include "support/call_tree_of.h"

namespace phlox::exporters {
namespace {

using test::call_tree_of_text;

LayoutOptions hundred_wide() {
  LayoutOptions options;
  options.width = 100;
  options.min_width = 1;
  return options;
}

TEST(flame_layout, children_are_side_by_side_from_their_parents_left_edge) {
  FlameLayout done = lay_out_flame(call_tree_of_text({"main;a 10", "main;b 30", "main 10", "other 50"}).nodes,
                                   hundred_wide());
  ASSERT_EQ(done.boxes.size(), 5U);
  EXPECT_DOUBLE_EQ(done.boxes[2].x, 50);  // other
  EXPECT_DOUBLE_EQ(done.boxes[4].x, 10);  // b
  EXPECT_DOUBLE_EQ(done.boxes[4].width, 30);
  EXPECT_EQ(done.boxes[4].row, 2U);
  EXPECT_EQ(done.rows, 3U);
}

TEST(flame_layout, narrow_frames_are_counted_with_what_is_beneath_them) {
  FlameLayout done = lay_out_flame(call_tree_of_text({"a;x;y 5", "b 995"}).nodes, hundred_wide());
  EXPECT_EQ(done.boxes.size(), 2U);
  EXPECT_EQ(done.narrow.frames, 3U);
  EXPECT_EQ(done.narrow.weight, 5);
  EXPECT_DOUBLE_EQ(done.boxes[1].x, 0.5);
}

TEST(flame_layout, too_many_boxes_raise_the_narrowest_width) {
  std::vector<std::string> lines;
  for (int i = 0; i < 50; ++i) lines.push_back("f" + std::to_string(i) + (i < 25 ? " 1" : " 3"));
  LayoutOptions options = hundred_wide();
  options.min_width = 0.5;
  options.max_boxes = 30;
  FlameLayout done = lay_out_flame(call_tree_of_text(lines).nodes, options);
  EXPECT_DOUBLE_EQ(done.min_width, 2);
  EXPECT_EQ(done.boxes.size(), 26U);
  EXPECT_EQ(done.narrow.frames, 25U);
}

TEST(flame_layout, deep_rows_are_counted_apart) {
  std::string path = "f";
  for (int i = 0; i < 29; ++i) path += ";f";
  LayoutOptions options = hundred_wide();
  options.max_depth = 20;
  FlameLayout done = lay_out_flame(call_tree_of_text({path + " 10"}).nodes, options);
  EXPECT_EQ(done.rows, 21U);
  EXPECT_EQ(done.deep.frames, 10U);
  EXPECT_EQ(done.deep.weight, 10);
  EXPECT_EQ(done.narrow.frames, 0U);
}

TEST(flame_layout, tree_without_weight_is_one_box) {
  EXPECT_EQ(lay_out_flame(call_tree_of_text({}).nodes, hundred_wide()).boxes.size(), 1U);
  EXPECT_EQ(lay_out_flame({}, hundred_wide()).boxes.size(), 0U);
}

}  // namespace
}  // namespace phlox::exporters
