#include "phlox/base/text.h"

#include <gtest/gtest.h>

namespace phlox {
namespace {

TEST(BaseName, is_what_stands_behind_the_last_slash) {
  EXPECT_EQ(base_name("/usr/lib/libc.so.6"), "libc.so.6");
  EXPECT_EQ(base_name("libc.so.6"), "libc.so.6");
  EXPECT_EQ(base_name("folder/"), "");
  EXPECT_EQ(base_name(""), "");
}

TEST(Number, is_the_whole_text) {
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<double>("1.5e3"), 1500);
  for (const char* text : {"", " 1", "1 ", "+1", "0x1", "12a"}) EXPECT_FALSE(parse_number<int>(text)) << text;
  EXPECT_FALSE(parse_number<uint8_t>("256"));
  EXPECT_FALSE(parse_number<unsigned>("-1"));
  for (const char* text : {"nan", "inf", "1e999", ".", "1.2.3"})
    EXPECT_FALSE(parse_number<double>(text)) << text;
}

TEST(Time, is_written_in_one_way_everywhere) {
  EXPECT_EQ(parse_nanoseconds("10"), 10e9);
  EXPECT_EQ(parse_nanoseconds("1.5s"), 1.5e9);
  EXPECT_EQ(parse_nanoseconds("500ms"), 500e6);
  EXPECT_EQ(parse_nanoseconds("20us"), 20e3);
  EXPECT_EQ(parse_nanoseconds("7ns"), 7);
  EXPECT_EQ(parse_nanoseconds("2m"), 120e9);
  EXPECT_EQ(parse_nanoseconds("1h"), 3600e9);
  EXPECT_EQ(parse_nanoseconds("-1s"), -1e9);  // whether that makes sense is the caller's to say
  for (const char* text : {"", "s", "ms", "1 s", "1d", "1s1", "nan", "1sm"})
    EXPECT_FALSE(parse_nanoseconds(text)) << text;
}

}  // namespace
}  // namespace phlox
