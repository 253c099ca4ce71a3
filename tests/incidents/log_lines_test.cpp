#include "phlox/incidents/log_lines.h"

#include <gtest/gtest.h>

#include <vector>

namespace phlox::incidents {
namespace {

std::vector<std::string> lines(LogLines& of, std::string_view bytes) {
  std::vector<std::string> out;
  of.put(bytes, [&](std::string_view line) { out.emplace_back(line); });
  return out;
}

TEST(LogLines, a_line_may_come_in_parts) {
  LogLines log;
  EXPECT_TRUE(lines(log, "one").empty());
  EXPECT_EQ(lines(log, " line\r\ntwo\n\nth"), (std::vector<std::string>{"one line", "two", ""}));
  EXPECT_EQ(lines(log, "ree\n"), std::vector<std::string>{"three"});
}

TEST(LogLines, a_line_without_an_end_takes_no_more_memory_than_the_longest) {
  LogLines log;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(lines(log, std::string(10'000, 'x')).empty());
  const auto out = lines(log, "\nnext\n");
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].size(), LogLines::kLongestLine);
  EXPECT_EQ(out[1], "next");
}

TEST(LogLines, what_a_replaced_file_had_begun_is_dropped) {
  LogLines log;
  lines(log, "half");
  log.restart();
  EXPECT_EQ(lines(log, "new\n"), std::vector<std::string>{"new"});
}

}  // namespace
}  // namespace phlox::incidents
