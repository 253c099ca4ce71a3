#include "phlox/base/utf8.h"

#include <gtest/gtest.h>

namespace phlox {
namespace {

TEST(Utf8, characters_are_decoded_and_all_else_is_one_byte) {
  for (const auto& [text, code] : {std::pair<std::string_view, char32_t>{"a", 'a'},
                                   {"\xc2\x80", 0x80},
                                   {"\xdf\xbf", 0x7ff},
                                   {"\xe0\xa0\x80", 0x800},
                                   {"\xef\xbf\xbd", 0xfffd},
                                   {"\xf0\x90\x80\x80", 0x10000},
                                   {"\xf4\x8f\xbf\xbf", 0x10ffff}}) {
    const Character character = first_character(std::string(text) + "x");
    EXPECT_TRUE(character.valid && character.code == code && character.bytes == text.size()) << text;
    if (text.size() > 1) {
      EXPECT_FALSE(first_character(text.substr(0, text.size() - 1)).valid) << "cut short";
    }
  }
  for (const std::string_view text : {"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x28\xa1"}) {
    const Character character = first_character(text);
    EXPECT_TRUE(!character.valid && character.bytes == 1 && character.code == 0xfffd) << text;
  }
  EXPECT_EQ(valid_utf8("a\xff\xc3\xa9"), "a\xef\xbf\xbd\xc3\xa9");
}

TEST(Utf8, wide_characters_take_two_columns_and_combining_marks_none) {
  EXPECT_EQ(columns_of("plain"), 5U);
  EXPECT_EQ(columns_of("名前"), 4U);
  EXPECT_EQ(columns_of("한글"), 4U);
  EXPECT_EQ(columns_of("ｱ｡"), 2U) << "halfwidth";
  EXPECT_EQ(columns_of("e\xcc\x81"), 1U);
  EXPECT_EQ(columns_of("🚀✅"), 4U);
  EXPECT_EQ(columns_of("✓→é"), 3U) << "as terminals draw them";
  EXPECT_EQ(columns_of(char32_t{0x10fffd}), 1U);
}

TEST(Utf8, the_ends_of_a_text_are_whole_characters) {
  const std::string_view text = "a名e\xcc\x81z";
  EXPECT_EQ(first_columns(text, 2), "a");
  EXPECT_EQ(first_columns(text, 3), "a名");
  EXPECT_EQ(first_columns(text, 4), "a名e\xcc\x81");
  EXPECT_EQ(first_columns(text, 9), text);
  EXPECT_EQ(last_columns(text, 1), "z");
  EXPECT_EQ(last_columns(text, 3), "e\xcc\x81z") << "half of a wide one is none";
  EXPECT_EQ(last_columns(text, 4), "名e\xcc\x81z");
  EXPECT_EQ(last_columns(text, 0), "");
}

TEST(Utf8, what_moves_the_cursor_or_hides_is_known) {
  for (const char32_t code : {0x061c, 0x200b, 0x200d, 0x200f, 0x2028, 0x202e, 0x2060, 0x2069, 0xfeff})
    EXPECT_TRUE(is_deceiving(code)) << static_cast<uint32_t>(code);
  for (const char32_t code : {0x20, 0xa0, 0x2010, 0x202f, 0x2070, 0xfe0f}) {
    EXPECT_FALSE(is_deceiving(code) || is_control(code)) << static_cast<uint32_t>(code);
  }
  for (const char32_t code : {0, 0x1b, 0x7f, 0x85, 0x9f}) EXPECT_TRUE(is_control(code));
}

}  // namespace
}  // namespace phlox
