#include "phlox/base/nearest.h"

#include <gtest/gtest.h>

namespace phlox {
namespace {

const std::vector<std::string> kWords = {"--duration", "--debug-path", "--output", "--pid", "--rate"};

TEST(Nearest, a_slip_of_the_fingers_is_the_same_word) {
  for (const char* slip : {"--durration", "--duratoin", "--duraton", "--Duration", "--dur"})
    EXPECT_EQ(nearest(slip, kWords), std::vector<std::string>{"--duration"}) << slip;
}

TEST(Nearest, another_word_is_none_of_them) {
  for (const char* other : {"--subprocesses", "--xyzzy-plugh", "", "-"})
    EXPECT_TRUE(nearest(other, kWords).empty()) << other;
}

TEST(Nearest, the_nearest_comes_first_and_no_more_than_asked_for) {
  const std::vector<std::string> words = {"loads", "load", "loader", "dump"};
  EXPECT_EQ(nearest("loadz", words, 2), (std::vector<std::string>{"load", "loads"}));
  EXPECT_EQ(nearest("loadz", words, 1).size(), 1U);
}

TEST(Nearest, letters_apart) {
  EXPECT_EQ(letters_apart("", "abc"), 3U);
  EXPECT_EQ(letters_apart("ab", "ba"), 1U) << "a swap";
  EXPECT_EQ(letters_apart("kitten", "sitting"), 3U);
  EXPECT_EQ(letters_apart("same", "same"), 0U);
}

}  // namespace
}  // namespace phlox
