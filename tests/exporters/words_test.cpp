#include "phlox/exporters/words.h"

#include <gtest/gtest.h>

namespace phlox::exporters {
namespace {

using view::Weight;

TEST(words, what_xml_does_not_allow_becomes_visible) {
  EXPECT_EQ(displayable("plain é 名 👩"), "plain é 名 👩");
  EXPECT_EQ(displayable(std::string_view("a\0b\n\x1b\x7f", 6)), "a\\x00b\\x0a\\x1b\\x7f");
  EXPECT_EQ(displayable("\xc2\x85"), "\\x85");                                       // U+0085, a C1 control
  EXPECT_EQ(displayable("\xe2\x80\xaegnp.exe"), "\\u202egnp.exe");                   // turns the text round
  EXPECT_EQ(displayable("\xef\xbf\xbe|\xef\xbf\xbf"), "\xef\xbf\xbd|\xef\xbf\xbd");  // no XML characters
}

TEST(words, broken_utf8_becomes_replacement_characters) {
  const std::string kReplaced = "\xef\xbf\xbd";
  EXPECT_EQ(displayable("\xff"), kReplaced);
  EXPECT_EQ(displayable("\xc0\xaf"), kReplaced + kReplaced);                  // overlong
  EXPECT_EQ(displayable("\xed\xa0\x80"), kReplaced + kReplaced + kReplaced);  // a surrogate
  EXPECT_EQ(displayable("\xf4\x90\x80\x80"), kReplaced + kReplaced + kReplaced + kReplaced);
  EXPECT_EQ(displayable("a\xe5\x90"), "a" + kReplaced + kReplaced);  // cut short
}

TEST(words, markup_is_escaped) {
  EXPECT_EQ(xml_escaped("<a b='\"&'>"), "&lt;a b=&#39;&quot;&amp;&#39;&gt;");
}

TEST(words, names_are_cut_to_their_room) {
  EXPECT_EQ(fit_columns("handler", 7), "handler");
  EXPECT_EQ(fit_columns("handler", 6), "handl…");
  EXPECT_EQ(fit_columns("handler", 3), "ha…");
  EXPECT_EQ(fit_columns("handler", 2), "");
  EXPECT_EQ(fit_columns("名前の関数", 7), "名前の…");
  EXPECT_EQ(fit_columns("名前の関数", 4), "");
}

TEST(words, a_function_without_a_name_keeps_its_address) {
  EXPECT_EQ(fit_name("libfoo.so+0x1a40", 16), "libfoo.so+0x1a40");
  EXPECT_EQ(fit_name("libfoo.so+0x1a40", 12), "libf…+0x1a40");
  EXPECT_EQ(fit_name("libfoo.so+0x1a40", 8), "…+0x1a40");
  EXPECT_EQ(fit_name("libfoo.so+0x1a40", 5), "libf…");
  EXPECT_EQ(fit_name("handler", 5), "hand…");
  EXPECT_EQ(fit_name("", 5), "");
}

TEST(words, lines_are_broken_at_spaces) {
  EXPECT_EQ(wrap_columns("aa bb cccccc d", 5), (std::vector<std::string>{"aa bb", "cccccc", "d"}));
  EXPECT_EQ(wrap_columns("", 5), std::vector<std::string>{});
}

TEST(words, weights_have_a_unit) {
  EXPECT_EQ(weight_words(0, Weight::wall), "0 s");
  EXPECT_EQ(weight_words(7'500'000'000'000, Weight::cpu), "2 h 5 min");
  EXPECT_EQ(weight_words(1, Weight::samples), "1 sample");
  EXPECT_EQ(weight_words(12345, Weight::samples), "12,345 samples");
  EXPECT_EQ(weight_words(1, Weight::count), "1");
  EXPECT_EQ(weight_words(12345, Weight::count), "12,345");
  EXPECT_EQ(weight_words(999, Weight::bytes), "999 bytes");
  EXPECT_EQ(weight_words(1'230'000'000, Weight::bytes), "1.23 GB");
}

TEST(words, a_part_of_nothing_is_no_share) {
  EXPECT_EQ(share_words(1, 3), "33.3 %");
  EXPECT_EQ(share_words(0, 10), "0 %");
  EXPECT_EQ(share_words(1, 0), "0 %");
}

}  // namespace
}  // namespace phlox::exporters
