#include "phlox/process/cpu_list.h"

#include <gtest/gtest.h>

namespace phlox::process {
namespace {

using List = std::vector<int>;

TEST(CpuList, ranges_and_single_ones) {
  EXPECT_EQ(parse_cpu_list("0-3,8\n"), (List{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list("5"), List{5});
  EXPECT_EQ(parse_cpu_list("\n"), List{});
  EXPECT_EQ(parse_cpu_list(""), List{});
}

TEST(CpuList, what_is_no_list_ends_it) {
  EXPECT_EQ(parse_cpu_list("1,x"), List{1});
  EXPECT_EQ(parse_cpu_list("1-"), List{});
  EXPECT_EQ(parse_cpu_list("-1"), List{});
  EXPECT_EQ(parse_cpu_list("3-1"), List{});
  EXPECT_EQ(parse_cpu_list("0-4000000000"), List{});
  EXPECT_EQ(parse_cpu_list("0-100000"), List{});
}

TEST(CpuList, is_written_as_it_is_read) {
  for (const char* text : {"0-3,8", "5", "1,3,5-6", ""}) EXPECT_EQ(describe_cpus(parse_cpu_list(text)), text);
  EXPECT_EQ(describe_cpus(parse_cpu_list("3,1-2,2")), "1-3");
}

}  // namespace
}  // namespace phlox::process
