#include "phlox/process/memory_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace phlox::process {
namespace {

namespace fs = std::filesystem;

TEST(MemoryLimit, a_limit_is_a_number_that_a_machine_can_have) {
  EXPECT_EQ(parse_memory_limit("536870912\n"), 536870912u);
  EXPECT_FALSE(parse_memory_limit("max\n"));
  EXPECT_FALSE(parse_memory_limit("9223372036854771712\n"));
  EXPECT_FALSE(parse_memory_limit("99999999999999999999999\n"));
  EXPECT_FALSE(parse_memory_limit(""));
}

TEST(MemoryLimit, the_cache_that_can_be_dropped_is_found_in_both_versions) {
  EXPECT_EQ(parse_inactive_file("anon 5\ninactive_file 700\nactive_file 3\n", true), 700u);
  EXPECT_EQ(parse_inactive_file("inactive_file 1\ntotal_inactive_file 700\n", false), 700u);
  EXPECT_EQ(parse_inactive_file("inactive_file x\n", true), 0u);
  EXPECT_EQ(parse_inactive_file("", true), 0u);
}

TEST(MemoryLimit, what_is_used_is_less_the_cache) {
  std::string name = (fs::temp_directory_path() / "phlox-test-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const auto put = [&](const char* file, const char* text) { std::ofstream(name + "/" + file) << text; };
  const MemoryGroup group{name, true};
  EXPECT_FALSE(read_memory_use(group));
  put("memory.max", "1000\n");
  put("memory.current", "900\n");
  put("memory.stat", "inactive_file 400\n");
  EXPECT_EQ(read_memory_use(group)->used, 500u);
  EXPECT_DOUBLE_EQ(read_memory_use(group)->share(), 0.5);
  put("memory.stat", "inactive_file 4000\n");
  EXPECT_EQ(read_memory_use(group)->used, 0u);
  put("memory.max", "max\n");
  EXPECT_FALSE(read_memory_use(group));
  fs::remove_all(name);
}

}  // namespace
}  // namespace phlox::process
