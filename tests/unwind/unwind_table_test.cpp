#include "phlox/unwind/unwind_table.h"

#include <gtest/gtest.h>

#include "support/frame_bytes.h"

namespace phlox::unwind {
namespace {

using test::FrameBytes;

// CFA = rsp + 8, return address at CFA - 8: how every x86-64 function starts.
constexpr std::initializer_list<uint8_t> kStart = {0x0c, 7, 8, 0x90, 1};

Rule plain(CfaBase base, int32_t cfa_offset) {
  Rule rule;
  rule.kind = RuleKind::plain;
  rule.base = base;
  rule.cfa_offset = cfa_offset;
  rule.ra_offset = -8;
  return rule;
}

TEST(UnwindTable, push_and_frame_pointer_make_one_row_each) {
  FrameBytes cfi;
  const size_t cie = cfi.cie(kStart);
  // push %rbp: CFA 16, rbp at CFA - 16; mov %rsp, %rbp: CFA on rbp; leave: CFA rsp + 8
  cfi.fde(cie, 0x1000, 0x40, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x40 + 0x20, 0x0c, 7, 8});
  const UnwindTable table = cfi.table();
  Rule pushed = plain(CfaBase::sp, 16);
  pushed.fp = FpRule::at_cfa;
  pushed.fp_offset = -16;
  Rule framed = pushed;
  framed.base = CfaBase::fp;
  Rule left = pushed;
  left.cfa_offset = 8;
  EXPECT_EQ(table.find(ImageAddress(0xfff)).kind, RuleKind::none);
  EXPECT_EQ(table.find(ImageAddress(0x1000)), plain(CfaBase::sp, 8));
  EXPECT_EQ(table.find(ImageAddress(0x1001)), pushed);
  EXPECT_EQ(table.find(ImageAddress(0x1004)), framed);
  EXPECT_EQ(table.find(ImageAddress(0x1023)), framed);
  EXPECT_EQ(table.find(ImageAddress(0x1024)), left);
  EXPECT_EQ(table.find(ImageAddress(0x103f)), left);
  EXPECT_EQ(table.find(ImageAddress(0x1040)).kind, RuleKind::none);
  EXPECT_EQ(table.leftovers().entries, 0u);
  EXPECT_EQ(table.row_count(), 5u);
}

TEST(UnwindTable, remembered_state_comes_back) {
  FrameBytes cfi;
  const size_t cie = cfi.cie(kStart);
  cfi.fde(cie, 0x1000, 0x40, {0x41, 0x0e, 16, 0x0a, 0x42, 0x0e, 8, 0x41, 0x0b});
  const UnwindTable table = cfi.table();
  EXPECT_EQ(table.find(ImageAddress(0x1003)).cfa_offset, 8);
  EXPECT_EQ(table.find(ImageAddress(0x1004)).cfa_offset, 16);
}

TEST(UnwindTable, undefined_return_address_is_the_end) {
  FrameBytes cfi;
  const size_t cie = cfi.cie(kStart);
  cfi.fde(cie, 0x1000, 0x10, {0x07, 16});
  EXPECT_EQ(cfi.table().find(ImageAddress(0x1008)).kind, RuleKind::end);
}

TEST(UnwindTable, lazy_plt_expression_is_recognised) {
  FrameBytes cfi;
  const size_t cie = cfi.cie(kStart);
  // DW_OP_breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus
  cfi.fde(cie, 0x1000, 0x100, {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22});
  Rule rule = plain(CfaBase::plt, 8);
  rule.inner = 11;
  EXPECT_EQ(cfi.table().find(ImageAddress(0x1080)), rule);
}

TEST(UnwindTable, saved_stack_pointer_of_assembly_and_of_realigned_functions) {
  FrameBytes cfi;
  const size_t cie = cfi.cie(kStart);
  cfi.fde(cie, 0x1000, 0x10, {0x0f, 5, 0x77, 0x28, 0x06, 0x23, 8});  // *(rsp + 40) + 8
  cfi.fde(cie, 0x2000, 0x10,
          {0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06});  // rbp at *rbp; CFA = *(rbp - 8)
  cfi.fde(cie, 0x3000, 0x10, {0x0c, 10, 0});                  // CFA = r10: not followed
  const UnwindTable table = cfi.table();
  Rule assembly = plain(CfaBase::deref_sp, 8);
  assembly.inner = 40;
  Rule realigned = plain(CfaBase::deref_fp, 0);
  realigned.inner = -8;
  realigned.fp = FpRule::at_fp;
  EXPECT_EQ(table.find(ImageAddress(0x1000)), assembly);
  EXPECT_EQ(table.find(ImageAddress(0x2000)), realigned);
  EXPECT_EQ(table.find(ImageAddress(0x3000)).kind, RuleKind::none);
  EXPECT_EQ(table.leftovers().rows, 1u);
}

TEST(UnwindTable, signal_augmentation_is_a_signal_frame) {
  FrameBytes cfi;
  const size_t cie = cfi.cie(kStart, "zRS", 0);
  cfi.fde(cie, 0x1000, 0x10, {}, true);
  EXPECT_EQ(cfi.table().find(ImageAddress(0x1001)).kind, RuleKind::signal);
}

TEST(UnwindTable, earlier_section_wins_and_later_ones_fill_gaps) {
  FrameBytes eh, debug;
  debug.debug_frame = true;
  const size_t one = eh.cie(kStart);
  eh.fde(one, 0x1000, 0x10, {0x0e, 16});
  const size_t two = debug.cie(kStart);
  debug.fde(two, 0x1000, 0x10, {0x0e, 32});
  debug.fde(two, 0x1008, 0x80, {0x0e, 32});
  debug.fde(two, 0x2000, 0x10, {0x0e, 32});
  const FrameSection both[] = {eh.section(), debug.section()};
  const UnwindTable table = build_table(both, EM_X86_64);
  EXPECT_EQ(table.find(ImageAddress(0x1009)).cfa_offset, 16);
  EXPECT_EQ(table.find(ImageAddress(0x1012)).kind, RuleKind::none);
  EXPECT_EQ(table.find(ImageAddress(0x2004)).cfa_offset, 32);
}

TEST(UnwindTable, aarch64_return_address_starts_in_the_link_register) {
  FrameBytes cfi;
  const size_t cie = cfi.cie({0x0c, 31, 0}, "", 0, 30);
  // stp x29, x30, [sp, #-32]!: CFA = sp + 32, x29 at CFA - 32, x30 at CFA - 24
  cfi.fde(cie, 0x1000, 0x20, {0x44, 0x0e, 32, 0x9d, 4, 0x9e, 3});
  const UnwindTable table = cfi.table(EM_AARCH64);
  const Rule leaf = table.find(ImageAddress(0x1000));
  EXPECT_EQ(leaf.ra, RaRule::link_register);
  const Rule stored = table.find(ImageAddress(0x1004));
  EXPECT_EQ(stored.ra, RaRule::at_cfa);
  EXPECT_EQ(stored.ra_offset, -24);
  EXPECT_EQ(stored.fp_offset, -32);
  EXPECT_EQ(stored.cfa_offset, 32);
}

TEST(UnwindTable, damaged_entries_are_counted_and_the_rest_is_kept) {
  FrameBytes cfi;
  const size_t cie = cfi.cie(kStart);
  cfi.fde(cie + 4, 0x5000, 0x10, {});  // points into the middle of the CIE
  cfi.fde(cie, 0x1000, 0x10, {});
  FrameBytes::put32(cfi.bytes, 0xfffffff0);  // longer than the section
  const UnwindTable table = cfi.table();
  EXPECT_EQ(table.leftovers().entries, 2u);
  EXPECT_EQ(table.find(ImageAddress(0x1000)).cfa_offset, 8);
  EXPECT_EQ(table.find(ImageAddress(0x5000)).kind, RuleKind::none);
}

TEST(UnwindTable, location_that_leaves_the_function_ends_its_rows) {
  FrameBytes cfi;
  const size_t cie = cfi.cie(kStart);
  cfi.fde(cie, 0x1000, 0x10, {0x04, 0xff, 0xff, 0xff, 0x7f, 0x0e, 16});
  const UnwindTable table = cfi.table();
  EXPECT_EQ(table.find(ImageAddress(0x100f)).cfa_offset, 8);
  EXPECT_EQ(table.find(ImageAddress(0x1010)).kind, RuleKind::none);
  EXPECT_EQ(table.row_count(), 2u);
}

TEST(UnwindTable, gap_is_what_lies_between_functions_that_are_described) {
  FrameBytes cfi;
  const size_t cie = cfi.cie(kStart);
  cfi.fde(cie, 0x1000, 0x40, {});
  cfi.fde(cie, 0x2000, 0x40, {});
  const UnwindTable table = cfi.table();
  const auto gap = [&table](uint64_t pc) {
    const auto found = table.gap(ImageAddress(pc));
    return std::pair(found.first.value, found.second.value);
  };
  EXPECT_EQ(gap(0x1800), std::pair(uint64_t{0x1040}, uint64_t{0x2000}));
  EXPECT_EQ(gap(0x1040), std::pair(uint64_t{0x1040}, uint64_t{0x2000}));
  EXPECT_EQ(gap(0x100), std::pair(uint64_t{0}, uint64_t{0x1000}));
  EXPECT_EQ(gap(0x5000), std::pair(uint64_t{0x2040}, ~uint64_t{0}));
  EXPECT_EQ(gap(0x1010), std::pair(uint64_t{0x1010}, uint64_t{0x1010}));
  EXPECT_EQ(UnwindTable().gap(ImageAddress(1)), std::pair(ImageAddress(0), ImageAddress(~uint64_t{0})));
}

}  // namespace
}  // namespace phlox::unwind
