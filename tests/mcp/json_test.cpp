#include "phlox/mcp/json.h"

#include <gtest/gtest.h>

#include <string>

namespace phlox::mcp {
namespace {

std::string again(std::string_view text) {
  const auto value = parse_json(text);
  return value ? write_json(*value) : "error: " + value.error().message;
}

TEST(Json, numbers_stay_as_they_were_written) {
  for (const char* number : {"1", "-0", "1.0", "1e3", "123456789012345678901234567890", "0.1", "-1E-5"})
    EXPECT_EQ(again(number), number);
}

TEST(Json, what_is_written_is_one_line_of_ascii) {
  std::string hostile = "a\nb\"c\\d\x1b[31m\x7f\xc2\x9b\xe2\x80\xae";
  hostile += '\xff';
  const std::string line = write_json(Json::object({{hostile, hostile}}));
  for (const char c : line) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << line;
  const auto read = parse_json(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->items()[0].text(), "a\nb\"c\\d\x1b[31m\x7f\xc2\x9b\xe2\x80\xae\xef\xbf\xbd");
}

TEST(Json, damaged_text_is_an_error) {
  for (const char* text :
       {"", "{", "{\"a\":}", "[1,]", "nul", "1 2", "\"\xff\"", "\"\\ud800\"", "{} {}", "01", "+1", "NaN"})
    EXPECT_FALSE(parse_json(text)) << text;
  EXPECT_FALSE(parse_json(std::string_view("{}\0{}", 5)));
}

TEST(Json, depth_and_number_of_values_are_capped) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json(nested(32)));
  EXPECT_FALSE(parse_json(nested(33)));
  EXPECT_FALSE(parse_json(nested(1'000'000)));
  std::string many = "[0";
  for (int i = 0; i < 9'998; ++i) many += ",0";
  EXPECT_TRUE(parse_json(many + "]"));
  EXPECT_FALSE(parse_json(many + ",0]"));
}

TEST(Json, the_last_of_two_members_with_one_name_counts) {
  const auto value = parse_json(R"({"a":1,"b":2,"a":3})");
  ASSERT_TRUE(value);
  EXPECT_EQ(write_json(*value), R"({"a":3,"b":2})");
}

TEST(Json, integers_are_whole_and_fit) {
  const auto integer = [](const char* text) { return parse_json(text)->as_integer(); };
  EXPECT_EQ(integer("10"), 10);
  EXPECT_EQ(integer("10.0"), 10);
  EXPECT_EQ(integer("1e3"), 1000);
  EXPECT_EQ(integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(integer("1.5"), std::nullopt);
  EXPECT_EQ(integer("1e300"), std::nullopt);
  EXPECT_EQ(integer("\"10\""), std::nullopt);
}

}  // namespace
}  // namespace phlox::mcp
