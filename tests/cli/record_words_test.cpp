#include "phlox/cli/record_words.h"

#include <gtest/gtest.h>

namespace phlox::cli {
namespace {

std::string words(std::vector<Newcomer> fresh) {
  return newcomers_words(fresh);
}

TEST(Newcomers, of_one_command_line_are_said_together) {
  EXPECT_EQ(words({{12, "gunicorn"}}), "recording process 12 (gunicorn)");
  EXPECT_EQ(words({{12, "gunicorn"}, {13, "gunicorn"}}), "recording processes 12, 13 (gunicorn)");
  std::vector<Newcomer> many;
  for (pid_t pid = 1; pid <= 8; ++pid) many.push_back({pid, "worker"});
  EXPECT_EQ(newcomers_words(many), "recording processes 1, 2, 3, 4, 5, 6 and 2 more (worker)");
}

TEST(Newcomers, have_the_command_line_of_each) {
  EXPECT_EQ(words({{12, "client"}, {13, "gunicorn"}, {14, "client"}}),
            "recording processes 12, 14 (client), 13 (gunicorn)");
  EXPECT_EQ(words({{12, ""}, {13, "gunicorn"}}), "recording processes 13 (gunicorn), 12");
}

TEST(Newcomers, processes_with_equal_command_lines_are_reported_together) {
  const std::string long_one(200, 'x');
  EXPECT_EQ(words({{12, long_one + "1"}, {13, long_one + "2"}}),
            "recording processes 12, 13 (" + std::string(kLongestCommandSaid, 'x') + "...)");
}

TEST(Newcomers, that_are_not_named_have_no_command_line) {
  std::vector<Newcomer> many;
  for (pid_t pid = 1; pid <= 8; ++pid) many.push_back({pid, pid > 6 ? "tracker" : "worker"});
  EXPECT_EQ(newcomers_words(many), "recording processes 1, 2, 3, 4, 5, 6 (worker) and 2 more");
}

}  // namespace
}  // namespace phlox::cli
