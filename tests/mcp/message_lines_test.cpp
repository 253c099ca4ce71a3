#include "phlox/mcp/message_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phlox::mcp {
namespace {

std::vector<std::string> lines_of(const std::vector<std::string>& pieces, size_t longest, bool ends = true) {
  std::vector<std::string> seen;
  MessageLines lines(longest);
  const auto line = [&](std::string_view text) { seen.emplace_back(text); };
  const auto too_long = [&] { seen.emplace_back("(too long)"); };
  for (const std::string& piece : pieces) lines.put(piece, line, too_long);
  if (ends) lines.end(line, too_long);
  return seen;
}

using Lines = std::vector<std::string>;

TEST(MessageLines, pieces_make_lines_wherever_they_are_divided) {
  EXPECT_EQ(lines_of({"ab\ncd\n"}, 10), (Lines{"ab", "cd"}));
  EXPECT_EQ(lines_of({"a", "b", "\n", "cd", "\n"}, 10), (Lines{"ab", "cd"}));
  EXPECT_EQ(lines_of({"\n \n\r\n\t\n"}, 10), Lines{});
}

TEST(MessageLines, the_last_line_needs_no_end) {
  EXPECT_EQ(lines_of({"ab\ncd"}, 10), (Lines{"ab", "cd"}));
  EXPECT_EQ(lines_of({"ab\ncd"}, 10, false), Lines{"ab"});
}

TEST(MessageLines, of_a_line_that_is_too_long_nothing_is_taken_and_the_next_one_is) {
  EXPECT_EQ(lines_of({"12345\nab\n"}, 5), (Lines{"12345", "ab"}));
  EXPECT_EQ(lines_of({"123456\nab\n"}, 5), (Lines{"(too long)", "ab"}));
  EXPECT_EQ(lines_of({"123", "456", "789", "\na", "b\n"}, 5), (Lines{"(too long)", "ab"}));
  EXPECT_EQ(lines_of({"1234567"}, 5), Lines{"(too long)"});
}

}  // namespace
}  // namespace phlox::mcp
