#include "phlox/unwind/frame_entries.h"

#include <gtest/gtest.h>

#include "support/frame_bytes.h"

namespace phlox::unwind {
namespace {

using test::FrameBytes;

constexpr uint64_t kReturnAddress = 16;
constexpr uint8_t kPcRelative = 0x1b;  // 4 bytes, signed

std::vector<uint8_t> bytes_of(const CfiCode& code, size_t first) {
  std::vector<uint8_t> out;
  for (const std::byte b : code.bytes.first(first)) out.push_back(std::to_integer<uint8_t>(b));
  return out;
}

TEST(FrameEntries, functions_have_their_range_and_their_instructions) {
  FrameBytes cfi;
  const size_t cie = cfi.cie({0x0c, 7, 8});
  const size_t fde = cfi.bytes.size();
  cfi.fde(cie, 0x1000, 0x40, {0x41, 0x0e, 16});
  cfi.fde(cie, 0x3000, 0x10, {});
  const FrameSection section = cfi.section();
  const FrameEntries entries = read_entries(section, kReturnAddress);
  EXPECT_EQ(entries.damaged, 0u);
  ASSERT_EQ(entries.cies.size(), 1u);
  EXPECT_EQ(entries.cies[0].code_align, 1u);
  EXPECT_EQ(entries.cies[0].data_align, -8);
  EXPECT_FALSE(entries.cies[0].signal);
  EXPECT_EQ(bytes_of(entries.cies[0].code, 3), (std::vector<uint8_t>{0x0c, 7, 8}));
  ASSERT_EQ(entries.fdes.size(), 2u);
  EXPECT_EQ(entries.fdes[0].start, 0x1000u);
  EXPECT_EQ(entries.fdes[0].end, 0x1040u);
  EXPECT_EQ(entries.fdes[0].cie, &entries.cies[0]);
  EXPECT_EQ(bytes_of(entries.fdes[0].code, 3), (std::vector<uint8_t>{0x41, 0x0e, 16}));
  EXPECT_EQ(entries.fdes[0].code.address, FrameBytes::kAddress + fde + 4 + 4 + 16);
  EXPECT_EQ(entries.fdes[1].start, 0x3000u);
}

TEST(FrameEntries, addresses_relative_to_themselves_and_the_mark_of_a_signal_frame) {
  FrameBytes cfi;
  const size_t cie = cfi.cie({0x0c, 7, 8}, "zRS", kPcRelative);
  const size_t fde = cfi.bytes.size();
  std::vector<uint8_t> body;
  FrameBytes::put32(body, static_cast<uint32_t>(fde + 4 - cie));
  FrameBytes::put32(body, static_cast<uint32_t>(-0x1000));
  FrameBytes::put32(body, 0x20);
  body.push_back(0);
  cfi.entry(body);
  const FrameSection section = cfi.section();
  const FrameEntries entries = read_entries(section, kReturnAddress);
  ASSERT_EQ(entries.fdes.size(), 1u);
  EXPECT_EQ(entries.fdes[0].start, FrameBytes::kAddress + fde + 8 - 0x1000);
  EXPECT_EQ(entries.fdes[0].end - entries.fdes[0].start, 0x20u);
  EXPECT_TRUE(entries.fdes[0].cie->signal);
}

TEST(FrameEntries, what_a_linker_threw_away_is_passed_over_without_a_word) {
  FrameBytes cfi;
  const size_t cie = cfi.cie({0x0c, 7, 8});
  cfi.fde(cie, 0, 0x40, {});
  cfi.fde(cie, 0x1000, 0, {});
  FrameBytes::put32(cfi.bytes, 0);  // a terminator between joined sections
  cfi.fde(cie, 0x2000, 0x10, {});
  const FrameSection section = cfi.section();
  const FrameEntries entries = read_entries(section, kReturnAddress);
  ASSERT_EQ(entries.fdes.size(), 1u);
  EXPECT_EQ(entries.fdes[0].start, 0x2000u);
  EXPECT_EQ(entries.damaged, 0u);
}

TEST(FrameEntries, entries_of_another_form_are_counted_and_so_are_their_functions) {
  FrameBytes cfi;
  const size_t odd = cfi.cie({0x0c, 7, 8}, "", 0, 17);  // another column for the return address
  const size_t eh = cfi.cie({0x0c, 7, 8}, "eh");        // gcc 2
  const size_t good = cfi.cie({0x0c, 7, 8});
  cfi.fde(odd, 0x1000, 0x10, {});
  cfi.fde(eh, 0x2000, 0x10, {});
  cfi.fde(good, 0x3000, 0x10, {});
  cfi.fde(good, ~uint64_t{0}, 0x10, {});  // beyond the end of the world
  const FrameSection section = cfi.section();
  const FrameEntries entries = read_entries(section, kReturnAddress);
  EXPECT_EQ(entries.cies.size(), 1u);
  ASSERT_EQ(entries.fdes.size(), 1u);
  EXPECT_EQ(entries.fdes[0].start, 0x3000u);
  EXPECT_EQ(entries.damaged, 5u);
}

TEST(FrameEntries, section_that_is_cut_anywhere_is_read_as_far_as_it_goes) {
  FrameBytes cfi;
  const size_t cie = cfi.cie({0x0c, 7, 8}, "zR", kPcRelative);
  cfi.fde(cie, 0x1000, 0x10, {}, true);
  const FrameSection whole = cfi.section();
  for (size_t size = 0; size < whole.bytes.size(); ++size) {
    FrameSection cut = whole;
    cut.bytes = whole.bytes.first(size);
    EXPECT_TRUE(read_entries(cut, kReturnAddress).fdes.empty()) << size;
  }
}

}  // namespace
}  // namespace phlox::unwind
