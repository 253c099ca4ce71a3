#include "phlox/importers/text_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phlox::importers {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  MemoryInput input(std::as_bytes(std::span(text)));
  TextLines lines(input);
  std::vector<std::string> all;
  for (std::string_view line; lines.next(line);) all.emplace_back(line);
  return all;
}

TEST(TextLines, a_line_ends_as_on_any_system) {
  const std::vector<std::string> expected = {"a", "", "b c", "d"};
  for (const std::string_view end : {"\n", "\r\n", "\r"}) {
    std::string text;
    for (const std::string& line : expected) text.append(line).append(end);
    EXPECT_EQ(lines_of(text), expected);
    text.resize(text.size() - end.size());
    EXPECT_EQ(lines_of(text), expected);
  }
  EXPECT_EQ(lines_of("a\rb\nc\r\nd"), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_TRUE(lines_of("").empty());
}

// Whatever ends where: lines are longer and shorter than the pieces that are read.
TEST(TextLines, no_line_is_lost_where_a_piece_ends) {
  for (const std::string_view end : {"\n", "\r\n", "\r"}) {
    std::vector<std::string> expected;
    std::string text;
    for (size_t i = 0; i < 40; ++i) {
      expected.emplace_back((size_t{256} << 10) / 3 + i % 5 * 40'000 - 2 + i % 7,
                            static_cast<char>('a' + i % 26));
      text.append(expected.back()).append(end);
    }
    EXPECT_TRUE(lines_of(text) == expected);
  }
}

TEST(TextLines, a_line_that_is_far_too_long_is_passed_over_up_to_its_end) {
  for (const std::string_view end : {"\n", "\r\n", "\r"}) {
    const std::string text = "a" + std::string(end) +
                             std::string(TextLines::kLongest + (size_t{1} << 20), 'x') + std::string(end) +
                             "b" + std::string(end);
    MemoryInput input(std::as_bytes(std::span(text)));
    TextLines lines(input);
    std::vector<std::string> all;
    for (std::string_view line; lines.next(line);) all.emplace_back(line);
    EXPECT_EQ(all, (std::vector<std::string>{"a", "", "b"}));
    EXPECT_EQ(lines.cut(), 1u);
  }
}

TEST(TextLines, the_first_line_of_a_text_is_taken_off) {
  std::string_view text = "a\r\nb\rc\n\nd";
  for (const std::string_view line : {"a", "b", "c", "", "d"}) EXPECT_EQ(take_text_line(text), line);
  EXPECT_TRUE(text.empty());
}

}  // namespace
}  // namespace phlox::importers
