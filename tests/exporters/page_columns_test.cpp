#include "phlox/exporters/page_columns.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "phlox/base/encodings.h"

namespace phlox::exporters {
namespace {

std::vector<int> bytes_of(ColumnLayout layout, const std::vector<int64_t>& values) {
  ColumnWriter writer;
  writer.add("c", layout, values);
  return {reinterpret_cast<const unsigned char*>(writer.bytes().data()),
          reinterpret_cast<const unsigned char*>(writer.bytes().data()) + writer.bytes().size()};
}

TEST(page_columns, planes_hold_the_lowest_bytes_first) {
  EXPECT_EQ(bytes_of(ColumnLayout::planes, {0x0102, 0x03}), (std::vector<int>{0x02, 0x03, 0x01, 0x00}));
  EXPECT_EQ(bytes_of(ColumnLayout::planes, {0x010203}), (std::vector<int>{0x03, 0x02, 0x01}));
}

TEST(page_columns, words_have_a_width_that_typed_arrays_have) {
  EXPECT_EQ(bytes_of(ColumnLayout::words, {0x0102, 0x03}), (std::vector<int>{0x02, 0x01, 0x03, 0x00}));
  EXPECT_EQ(bytes_of(ColumnLayout::words, {0x010203}), (std::vector<int>{0x03, 0x02, 0x01, 0x00}));
}

TEST(page_columns, an_empty_column_has_a_width_of_one) {
  ColumnWriter writer;
  writer.add("c", ColumnLayout::planes, std::vector<int64_t>());
  writer.add_text("t", "ab");
  ASSERT_EQ(writer.columns().size(), 2U);
  EXPECT_EQ(writer.columns()[0].width, 1);
  EXPECT_EQ(writer.columns()[1].rows, 2U);
  EXPECT_EQ(writer.bytes(), "ab");
}

TEST(page_columns, signs_alternate) {
  EXPECT_EQ(zigzag(0), 0);
  EXPECT_EQ(zigzag(-1), 1);
  EXPECT_EQ(zigzag(1), 2);
  EXPECT_EQ(zigzag(-(int64_t{1} << 40)), (int64_t{1} << 41) - 1);
}

TEST(page_columns, deflated_bytes_come_back) {
  const std::string text(100'000, 'x');
  const auto packed = deflated(text);
  ASSERT_TRUE(packed);
  std::string back(text.size(), '\0');
  uLongf size = back.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(back.data()), &size,
                       reinterpret_cast<const Bytef*>(packed->data()), packed->size()),
            Z_OK);
  EXPECT_EQ(back, text);
}

// RFC 4648, section 10.
TEST(page_columns, base64_is_the_standards) {
  for (const auto& [bytes, text] :
       {std::pair{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}})
    EXPECT_EQ(base64(bytes), text);
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace phlox::exporters
