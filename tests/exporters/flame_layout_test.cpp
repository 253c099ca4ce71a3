#include "phlox/exporters/flame_layout.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/call_tree_of.h"
#include "support/cases.h"

namespace phlox::exporters {
namespace {

using test::call_tree_of_text;

LayoutOptions hundred_wide() {
  LayoutOptions options;
  options.width = 100;
  options.min_width = 1;
  return options;
}

// The page is held to the same cases (web/test/twins_test.ts).
TEST(flame_layout, is_that_of_the_common_cases) {
  const auto document = test::common_cases("flame_layout");
  ASSERT_TRUE(document.IsObject());
  for (const auto& row : document["cases"].GetArray()) {
    std::vector<std::string> lines;
    for (const auto& line : row["lines"].GetArray()) lines.emplace_back(line.GetString());
    LayoutOptions options;
    options.width = row["options"]["width"].GetDouble();
    options.min_width = row["options"]["minWidth"].GetDouble();
    options.max_boxes = row["options"]["maxBoxes"].GetUint();
    options.max_depth = row["options"]["maxDepth"].GetUint();
    const view::CallTree tree = call_tree_of_text(lines);
    const FlameLayout done = lay_out_flame(tree.nodes, options);
    const std::string name = row["name"].GetString();
    ASSERT_EQ(done.boxes.size(), row["boxes"].Size()) << name;
    for (rapidjson::SizeType i = 0; i < row["boxes"].Size(); ++i) {
      const auto& box = row["boxes"][i];
      EXPECT_EQ(tree.labels[tree.nodes[done.boxes[i].node].label].name, box[0].GetString()) << name;
      EXPECT_EQ(done.boxes[i].row, box[1].GetUint()) << name;
      EXPECT_DOUBLE_EQ(done.boxes[i].x, box[2].GetDouble()) << name;
      EXPECT_DOUBLE_EQ(done.boxes[i].width, box[3].GetDouble()) << name;
    }
    EXPECT_EQ(done.rows, row["rows"].GetUint()) << name;
    EXPECT_DOUBLE_EQ(done.min_width, row["minWidth"].GetDouble()) << name;
    EXPECT_EQ(done.narrow.frames, row["narrow"][0].GetUint()) << name;
    EXPECT_EQ(done.narrow.weight, row["narrow"][1].GetInt64()) << name;
    EXPECT_EQ(done.deep.frames, row["deep"][0].GetUint()) << name;
    EXPECT_EQ(done.deep.weight, row["deep"][1].GetInt64()) << name;
  }
}

TEST(flame_layout, tree_without_weight_is_one_box) {
  EXPECT_EQ(lay_out_flame(call_tree_of_text({}).nodes, hundred_wide()).boxes.size(), 1U);
  EXPECT_EQ(lay_out_flame({}, hundred_wide()).boxes.size(), 0U);
}

}  // namespace
}  // namespace phlox::exporters
