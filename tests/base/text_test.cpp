#include "phlox/base/text.h"

#include <gtest/gtest.h>

namespace phlox {
namespace {

TEST(BaseName, is_the_part_after_the_last_slash) {
  EXPECT_EQ(base_name("/usr/lib/libc.so.6"), "libc.so.6");
  EXPECT_EQ(base_name("libc.so.6"), "libc.so.6");
  EXPECT_EQ(base_name("folder/"), "");
  EXPECT_EQ(base_name(""), "");
}

TEST(Shortened, ends_behind_a_whole_word_or_letter) {
  EXPECT_EQ(shortened("python app.py", 13), "python app.py");
  EXPECT_EQ(shortened("python app.py", 11), "python ...");
  EXPECT_EQ(shortened("python app.py", 12), "python app.p...");
  EXPECT_EQ(shortened("p averylongargument", 12), "p averylonga...");
  EXPECT_EQ(shortened("averylongargument", 12), "averylongarg...");
  EXPECT_EQ(shortened("pp\u00e9\u00e9", 3), "pp...");
  EXPECT_EQ(shortened("\u00e9", 1), "...");
  EXPECT_EQ(shortened("", 0), "");
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

TEST(Number, is_taken_from_the_front) {
  std::string_view text = "12 34";
  int number = 0;
  EXPECT_TRUE(take_number(text, number));
  EXPECT_EQ(number, 12);
  EXPECT_FALSE(take_number(text, number)) << "a blank is none";
  EXPECT_EQ(text, " 34");
  text = "ff-1";
  EXPECT_TRUE(take_number(text, number, 16));
  EXPECT_EQ(number, 255);
  uint8_t small = 0;
  text = "256";
  EXPECT_FALSE(take_number(text, small));
  EXPECT_EQ(text, "256");
}

TEST(Time, is_written_the_same_everywhere) {
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

TEST(CountWords, has_a_comma_at_every_thousand) {
  EXPECT_EQ(count_words(0), "0");
  EXPECT_EQ(count_words(999), "999");
  EXPECT_EQ(count_words(1000), "1,000");
  EXPECT_EQ(count_words(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(ByteWords, have_three_digits_and_a_unit) {
  EXPECT_EQ(byte_words(0), "0 bytes");
  EXPECT_EQ(byte_words(1), "1 byte");
  EXPECT_EQ(byte_words(999), "999 bytes");
  EXPECT_EQ(byte_words(1000), "1.00 kB");
  EXPECT_EQ(byte_words(12'345), "12.3 kB");
  EXPECT_EQ(byte_words(999'400), "999 kB");
  EXPECT_EQ(byte_words(999'600), "1.00 MB");
  EXPECT_EQ(byte_words(UINT64_MAX), "18.4 EB");
}

}  // namespace
}  // namespace phlox
