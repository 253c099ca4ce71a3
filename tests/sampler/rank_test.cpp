#include "phlox/sampler/session/rank.h"

#include <gtest/gtest.h>

#include <string>

namespace phlox::sampler {
namespace {

std::string environment(std::initializer_list<const char*> entries) {
  std::string bytes;
  for (const char* entry : entries) bytes += std::string(entry) + '\0';
  return bytes;
}

TEST(Rank, is_that_of_the_launcher) {
  EXPECT_EQ(rank_words(environment({"HOME=/root", "RANK=3", "LOCAL_RANK=1"})), "RANK 3, LOCAL_RANK 1");
  EXPECT_EQ(rank_words(environment({"SLURM_PROCID=7", "OMPI_COMM_WORLD_RANK=2"})), "OMPI_COMM_WORLD_RANK 2");
  EXPECT_EQ(rank_words(environment({"LOCAL_RANK=0"})), "LOCAL_RANK 0");
}

TEST(Rank, is_a_number_of_a_variable_of_just_that_name) {
  EXPECT_EQ(rank_words(environment({"XRANK=3", "RANKING=4", "RANK=", "LOCAL_RANK=secret"})), "");
  EXPECT_EQ(rank_words(environment({"RANK=123456789"})), "");
  EXPECT_EQ(rank_words(""), "");
  EXPECT_EQ(rank_words("RANK=5"), "RANK 5");
}

}  // namespace
}  // namespace phlox::sampler
