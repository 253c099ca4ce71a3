#include "phlox/importers/input.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phlox::importers {
namespace {

TEST(Input, room_is_made_for_what_can_be_there) {
  const std::vector<std::byte> bytes(100);
  const MemoryInput input(bytes);
  EXPECT_EQ(input.room_for(0, 1000), 100u);
  EXPECT_EQ(input.room_for(90, 1000), 10u);
  EXPECT_EQ(input.room_for(90, 5), 5u);
  EXPECT_EQ(input.room_for(100, 5), 0u);
  EXPECT_EQ(input.room_for(~uint64_t{0}, 5), 0u);
}

// It says that it has 0 bytes: names of the kernel are in one.
TEST(Input, a_file_of_proc_is_read_whole) {
  const auto file = FileInput::open("/proc/self/status");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ((*file)->size(), 0u);
  EXPECT_GT((*file)->room_for(0, 5), 0u);
  EXPECT_NE(read_all(**file, 1 << 20).value_or("").find("VmRSS:"), std::string::npos);
}

TEST(Input, all_of_it_is_read_up_to_what_is_allowed) {
  for (const size_t size : std::vector<size_t>{0, 1, 65535, 65536, 65537, 300'000}) {
    const std::vector<std::byte> bytes(size, std::byte{'x'});
    MemoryInput input(bytes);
    EXPECT_EQ(read_all(input, size).value_or("none"), std::string(size, 'x')) << size;
    EXPECT_TRUE(size == 0 || !read_all(input, size - 1)) << size;
  }
}

}  // namespace
}  // namespace phlox::importers
