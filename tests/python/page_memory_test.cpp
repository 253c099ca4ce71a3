#include "phlox/python/page_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/fake_interpreter.h"

namespace phlox::python {
namespace {

using Pages = std::vector<uint64_t>;

class PagesOf : public testing::Test {
 protected:
  static constexpr size_t kCount = 8;

  PagesOf() {
    const RemoteAddress at = memory.allocate((kCount + 1) * PageMemory::kPage, PageMemory::kPage);
    for (size_t i = 0; i < kCount; ++i) {
      numbers.push_back(at.value / PageMemory::kPage + i);
      memory.put_value(address(i), uint64_t{i + 1} << 32);
    }
  }
  RemoteAddress address(size_t page) const { return RemoteAddress(numbers[page] * PageMemory::kPage); }

  test::FakeMemory memory;
  PageMemory pages{memory};
  Pages numbers;
};

TEST_F(PagesOf, a_program_are_read_ahead_in_one_call) {
  const size_t before = memory.calls();
  pages.read_ahead(numbers);
  EXPECT_EQ(memory.calls(), before + 1);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(pages.word(address(i)).value, uint64_t{i + 1} << 32);
  EXPECT_EQ(memory.calls(), before + 1);
}

TEST_F(PagesOf, a_program_that_are_known_are_not_read_again_before_they_are_forgotten) {
  pages.word(address(2));
  memory.put_value(address(2), uint64_t{99} << 32);
  memory.put_value(address(3), uint64_t{98} << 32);
  pages.read_ahead(numbers);
  EXPECT_EQ(pages.word(address(2)).value, uint64_t{3} << 32);
  EXPECT_EQ(pages.word(address(3)).value, uint64_t{98} << 32);
  pages.forget();
  pages.read_ahead(numbers);
  EXPECT_EQ(pages.word(address(2)).value, uint64_t{99} << 32);
}

TEST_F(PagesOf, a_program_behind_one_that_cannot_be_read_are_read_when_they_are_asked_for) {
  memory.make_unreadable(address(3), PageMemory::kPage);
  pages.read_ahead(numbers);
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

TEST_F(PagesOf, a_program_that_are_too_many_are_not_all_read_ahead) {
  Pages many;
  for (uint64_t i = 0; i < 20'000; ++i) many.push_back(numbers[0] + i);
  pages.read_ahead(many);
  EXPECT_EQ(pages.word(address(7)).value, uint64_t{8} << 32);
}

}  // namespace
}  // namespace phlox::python
