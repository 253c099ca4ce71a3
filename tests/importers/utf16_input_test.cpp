#include "phlox/importers/utf16_input.h"

#include <gtest/gtest.h>

#include <string>

#include "phlox/importers/collapsed.h"
#include "phlox/importers/registry.h"
#include "support/imported.h"

namespace phlox::importers {
namespace {

std::string bytes_of(std::u16string_view text, bool big_endian) {
  std::string bytes = big_endian ? "\xfe\xff" : "\xff\xfe";
  for (const char16_t unit : text) {
    const auto high = static_cast<char>(unit >> 8), low = static_cast<char>(unit & 0xff);
    bytes += big_endian ? high : low;
    bytes += big_endian ? low : high;
  }
  return bytes;
}

std::string utf8_of(const std::string& bytes) {
  MemoryInput input(std::as_bytes(std::span(bytes)));
  const auto text = Utf16Input::of(input);
  return text ? read_all(*text, size_t{1} << 24).value_or("too much") : "no UTF-16";
}

TEST(Utf16Input, characters_of_every_length_are_utf_8) {
  for (const bool big_endian : {false, true})
    EXPECT_EQ(utf8_of(bytes_of(u"a;\u00fc;\u20ac;\U0001f40d 3\r\n", big_endian)),
              "a;\u00fc;\u20ac;\U0001f40d 3\r\n");
}

TEST(Utf16Input, halves_of_pairs_are_no_characters) {
  constexpr char16_t kHigh = 0xd83d, kLow = 0xdc0d;
  const std::u16string text = {u'a', kLow, kHigh, u'b', kHigh, kHigh, kLow, kHigh};
  EXPECT_EQ(utf8_of(bytes_of(text, false)), "a\ufffd\ufffdb\ufffd\U0001f40d\ufffd");
}

TEST(Utf16Input, long_texts_come_whole_and_an_odd_byte_at_the_end_is_left_out) {
  std::u16string text;
  std::string expected;
  for (int i = 0; i < 100'000; ++i) {
    text += u"f\u00fc;";
    expected += "f\u00fc;";
  }
  EXPECT_TRUE(utf8_of(bytes_of(text, true)) == expected);
  EXPECT_EQ(utf8_of(bytes_of(u"ab", false) + "c"), "ab");
  EXPECT_EQ(utf8_of("ab"), "no UTF-16");
  EXPECT_EQ(utf8_of(""), "no UTF-16");
}

TEST(Utf16Input, formats_are_recognised_in_it) {
  const std::string bytes = bytes_of(u"main;\u00e4 3\r\nmain;b 4\r\n", false);
  MemoryInput input(std::as_bytes(std::span(bytes)));
  const auto text = Utf16Input::of(input);
  ASSERT_NE(text, nullptr);
  const Format* format = recognise(*text);
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(format->name, "collapsed");
  profile::Profile profile;
  const auto outcome = format->import(*text, {}, profile);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->samples, 7u);
}

}  // namespace
}  // namespace phlox::importers
