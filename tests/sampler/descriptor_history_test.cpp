#include "phlox/sampler/assemble/descriptor_history.h"

#include <gtest/gtest.h>

namespace phlox::sampler {
namespace {

std::string text(const std::string* link) {
  return link != nullptr ? *link : "";
}

TEST(DescriptorHistory, what_is_the_same_before_and_after_was_so_all_the_while) {
  DescriptorHistory history;
  history.saw(3, "socket:[7]", 10, 12);
  EXPECT_EQ(text(history.all_the_while(3, 12, 15)), "") << "until when is not known yet";
  history.saw(3, "socket:[7]", 20, 22);
  EXPECT_EQ(text(history.all_the_while(3, 12, 20)), "socket:[7]");
  EXPECT_EQ(text(history.all_the_while(3, 11, 20)), "") << "the first was read after that";
  EXPECT_EQ(text(history.all_the_while(3, 12, 21)), "") << "the last was read before that";
  EXPECT_EQ(text(history.all_the_while(4, 12, 20)), "");
}

TEST(DescriptorHistory, another_file_under_the_same_number_starts_over) {
  DescriptorHistory history;
  history.saw(3, "socket:[7]", 10, 12);
  history.saw(3, "socket:[8]", 20, 22);
  EXPECT_EQ(text(history.all_the_while(3, 12, 20)), "");
  history.saw(3, "socket:[8]", 30, 32);
  EXPECT_EQ(text(history.all_the_while(3, 22, 30)), "socket:[8]");
  history.saw(3, "", 40, 42);
  EXPECT_EQ(text(history.all_the_while(3, 42, 40)), "") << "closed";
}

TEST(DescriptorHistory, of_one_call_a_moment_is_enough) {
  DescriptorHistory history;
  history.saw(3, "pipe:[7]", 10, 12);
  history.saw(3, "pipe:[7]", 20, 22);
  EXPECT_EQ(text(history.some_time(3, 5, 12)), "pipe:[7]");
  EXPECT_EQ(text(history.some_time(3, 20, 50)), "pipe:[7]");
  EXPECT_EQ(text(history.some_time(3, 21, 50)), "");
  EXPECT_EQ(text(history.some_time(3, 5, 11)), "");
}

}  // namespace
}  // namespace phlox::sampler
