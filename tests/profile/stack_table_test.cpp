#include "phlox/profile/stack_table.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <map>
#include <random>

namespace phlox::profile {
namespace {

TEST(StackTable, each_parent_and_frame_has_one_number) {
  std::map<std::pair<StackId, FrameId>, StackId> known;
  StackTable table;
  EXPECT_FALSE(table.find(StackId(), FrameId(1)));
  std::minstd_rand random(1);
  for (int i = 0; i < 200'000; ++i) {
    const StackId parent(static_cast<uint32_t>(random() % (table.size() + 1)));
    const FrameId frame(static_cast<uint32_t>(1 + random() % 20));
    const auto [at, fresh] =
        known.try_emplace({parent, frame}, StackId(static_cast<uint32_t>(known.size() + 1)));
    EXPECT_EQ(table.find(parent, frame), fresh ? StackId() : at->second);
    EXPECT_EQ(table.add(parent, frame), std::pair(at->second, fresh));
  }
  EXPECT_EQ(table.size(), known.size());
  for (const auto& [key, id] : known) EXPECT_EQ(table.find(key.first, key.second), id);
}

// What the C library gave out; 0 where it is another one.
size_t memory_in_use() {
  const auto used = ::mallinfo2();
  return used.uordblks + used.hblkhd;
}

TEST(StackTable, a_million_stacks_take_less_than_20_mebibytes) {
  const size_t before = memory_in_use();
  if (before == 0) GTEST_SKIP() << "the allocator does not say";
  StackTable table;
  for (uint32_t i = 1; i <= 1'000'000; ++i) table.add(StackId(i / 2), FrameId(i));
  EXPECT_LT(memory_in_use() - before, size_t{20} << 20);
}

}  // namespace
}  // namespace phlox::profile
