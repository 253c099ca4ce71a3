#include "phlox/unwind/table_format.h"

#include <gtest/gtest.h>

#include "support/frame_bytes.h"

namespace phlox::unwind {
namespace {

using test::FrameBytes;

// CFA = rsp + 8, return address at CFA - 8: how every x86-64 function starts.
constexpr std::initializer_list<uint8_t> kStart = {0x0c, 7, 8, 0x90, 1};

TEST(TableFormat, bytes_give_the_same_table_back) {
  FrameBytes cfi;
  const size_t cie = cfi.cie(kStart);
  cfi.fde(cie, 0x1000, 0x40, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6});
  const UnwindTable table = cfi.table();
  const auto bytes = table_bytes(table);
  const auto back = parse_table(bytes);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(*back, table);
}

TEST(TableFormat, bytes_with_any_one_changed_or_cut_are_refused_or_harmless) {
  FrameBytes cfi;
  const size_t cie = cfi.cie(kStart);
  cfi.fde(cie, 0x1000, 0x40, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6});
  const auto bytes = table_bytes(cfi.table());
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(parse_table(std::span(bytes).first(i)), nullptr) << i;
    auto changed = bytes;
    changed[i] ^= std::byte{0xff};
    if (const auto table = parse_table(changed)) {  // the base or a count of leftovers
      for (uint64_t pc = 0xff0; pc < 0x1050; ++pc) table->find(ImageAddress(pc));
    }
  }
}

TEST(TableFormat, bytes_of_another_version_or_of_nothing_are_refused) {
  const auto bytes = table_bytes(UnwindTable(EM_X86_64));
  const auto back = parse_table(bytes);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->machine(), EM_X86_64);
  EXPECT_EQ(back->row_count(), 0u);
  auto older = bytes;
  older[7] = std::byte{'2'};
  EXPECT_EQ(parse_table(older), nullptr);
  EXPECT_EQ(parse_table({}), nullptr);
}

}  // namespace
}  // namespace phlox::unwind
