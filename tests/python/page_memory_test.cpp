#include "phlox/python/page_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/fake_interpreter.h"

namespace phlox::python {
namespace {

constexpr PageMemory::Blocks kAll = PageMemory::blocks_of(0, PageMemory::kPage - 1);
using Parts = std::vector<PageMemory::Part>;

class PagesOf : public testing::Test {
 protected:
  static constexpr size_t kCount = 8;

  PagesOf() {
    const RemoteAddress at = memory.allocate((kCount + 1) * PageMemory::kPage, PageMemory::kPage);
    for (size_t i = 0; i < kCount; ++i) {
      parts.push_back({at.value / PageMemory::kPage + i, kAll});
      memory.put_value(address(i), uint64_t{i + 1} << 32);
    }
  }
  RemoteAddress address(size_t page) const { return RemoteAddress(parts[page].page * PageMemory::kPage); }

  test::FakeMemory memory;
  PageMemory pages{memory};
  Parts parts;
};

TEST_F(PagesOf, a_program_are_read_ahead_in_one_call) {
  const size_t before = memory.calls();
  pages.read_ahead(parts);
  EXPECT_EQ(memory.calls(), before + 1);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(pages.word(address(i)).value, uint64_t{i + 1} << 32);
  EXPECT_EQ(memory.calls(), before + 1);
}

TEST_F(PagesOf, a_program_that_are_known_are_not_read_again_before_they_are_forgotten) {
  pages.word(address(2));
  memory.put_value(address(2), uint64_t{99} << 32);
  memory.put_value(address(3), uint64_t{98} << 32);
  pages.read_ahead(parts);
  EXPECT_EQ(pages.word(address(2)).value, uint64_t{3} << 32);
  EXPECT_EQ(pages.word(address(3)).value, uint64_t{98} << 32);
  pages.forget();
  pages.read_ahead(parts);
  EXPECT_EQ(pages.word(address(2)).value, uint64_t{99} << 32);
}

TEST_F(PagesOf, a_program_behind_one_that_cannot_be_read_are_read_when_they_are_asked_for) {
  memory.make_unreadable(address(3), PageMemory::kPage);
  pages.read_ahead(parts);
  for (size_t i = 0; i < kCount; ++i)
    EXPECT_EQ(pages.word(address(i)).value, i == 3 ? 0 : uint64_t{i + 1} << 32) << i;
  memory.make_readable();
  pages.forget();
  EXPECT_EQ(pages.word(address(3)).value, uint64_t{4} << 32);
}

TEST_F(PagesOf, a_program_that_were_asked_for_are_read_at_once_for_the_same_purpose) {
  const auto calls = [&](uint64_t purpose, std::initializer_list<size_t> asked) {
    const size_t before = memory.calls();
    pages.forget(purpose);
    for (const size_t page : asked) EXPECT_EQ(pages.word(address(page)).value, uint64_t{page + 1} << 32);
    return memory.calls() - before;
  };
  EXPECT_EQ(calls(1, {5, 1, 7}), 3U);
  EXPECT_EQ(calls(2, {2, 3}), 2U);
  EXPECT_EQ(calls(1, {1, 5}), 1U);
  EXPECT_EQ(calls(2, {2, 3, 4}), 2U);
  EXPECT_EQ(calls(2, {2, 3, 4}), 1U);
  EXPECT_EQ(calls(1, {1, 5, 7}), 2U) << "a page that nothing asked for last time";
  pages.forget();
  EXPECT_EQ(calls(1, {}), 1U);
  EXPECT_EQ(calls(1, {}), 0U);
  for (uint64_t other = 3; other < 200; ++other) calls(other, {1});
  EXPECT_LE(calls(2, {2, 3, 4}), 3U);
}

TEST_F(PagesOf, a_program_across_a_border_are_both_asked_for) {
  std::array<std::byte, 16> bytes{};
  for (const size_t calls : {2, 1}) {
    const size_t before = memory.calls();
    pages.forget(1);
    EXPECT_TRUE(pages.RemoteMemory::read(RemoteAddress(address(7).value - 8), bytes));
    EXPECT_EQ(memory.calls() - before, calls);
  }
}

TEST_F(PagesOf, a_program_are_read_in_part_for_a_purpose_that_comes_back) {
  const auto at = [&](size_t block) { return RemoteAddress(address(4).value + block * PageMemory::kBlock); };
  for (size_t block = 0; block < 16; ++block) memory.put_value(at(block), uint64_t{block + 1} << 32);
  const auto calls = [&](std::initializer_list<size_t> blocks) {
    const size_t before = memory.calls();
    pages.forget(1);
    for (const size_t block : blocks) EXPECT_EQ(pages.word(at(block)).value, uint64_t{block + 1} << 32);
    return memory.calls() - before;
  };
  EXPECT_EQ(calls({0, 9, 15}), 1U) << "a whole page at first";
  EXPECT_EQ(calls({9, 0, 15}), 1U);
  EXPECT_EQ(calls({15, 4}), 2U);
  EXPECT_EQ(calls({4, 7, 8}), 2U) << "the blocks behind one that was not expected, but not all";
  EXPECT_EQ(calls({4, 7, 8}), 1U);
}

TEST_F(PagesOf, a_program_are_read_again_for_blocks_that_nothing_asked_for) {
  pages.read_ahead(Parts{{parts[1].page, PageMemory::blocks_of(0, 7)}});
  memory.put_value(RemoteAddress(address(1).value + 8), uint64_t{20} << 32);
  memory.put_value(RemoteAddress(address(1).value + 2048), uint64_t{21} << 32);
  EXPECT_EQ(pages.word(RemoteAddress(address(1).value + 8)).value, 0U) << "in a block that was read";
  EXPECT_EQ(pages.word(RemoteAddress(address(1).value + 2048)).value, uint64_t{21} << 32);
}

TEST_F(PagesOf, a_program_have_nothing_of_no_size_where_they_cannot_be_read) {
  memory.make_unreadable(address(3), PageMemory::kPage);
  EXPECT_NE(pages.find(address(2), 0), nullptr);
  EXPECT_EQ(pages.find(address(3), 0), nullptr);
}

TEST(Blocks, are_those_that_have_the_bytes) {
  EXPECT_EQ(PageMemory::blocks_of(0, 0), 1);
  EXPECT_EQ(PageMemory::blocks_of(255, 256), 3);
  EXPECT_EQ(PageMemory::blocks_of(4095, 4095), 0x8000);
  EXPECT_EQ(PageMemory::blocks_of(0, 4095), 0xffff);
}

TEST_F(PagesOf, a_program_that_are_too_many_are_not_all_read_ahead) {
  Parts many;
  for (uint64_t i = 0; i < 20'000; ++i) many.push_back({parts[0].page + i, 1});
  pages.read_ahead(many);
  EXPECT_EQ(pages.word(address(7)).value, uint64_t{8} << 32);
}

}  // namespace
}  // namespace phlox::python
