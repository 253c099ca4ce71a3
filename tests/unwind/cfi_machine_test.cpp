#include "phlox/unwind/cfi_machine.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace phlox::unwind {
namespace {

constexpr int64_t kPush = -8;

// Instructions without a file around them: a CIE's, a function's.
class Executed {
 public:
  Executed(std::vector<uint8_t> cie, std::vector<uint8_t> function, uint64_t size = 0x40)
      : cie_code_(std::move(cie)), code_(std::move(function)), machine_(*registers_of(EM_X86_64)) {
    cie_.data_align = -8;
    cie_.code.bytes = std::as_bytes(std::span(cie_code_));
    fde_.start = 0x1000;
    fde_.end = 0x1000 + size;
    fde_.cie = &cie_;
    fde_.code = {std::as_bytes(std::span(code_)), 0x9000};
    initial_ = machine_.initial(cie_, section_);
    for (machine_.begin(fde_, section_, initial_); machine_.next();)
      rows.emplace_back(machine_.row_start() - 0x1000, machine_.state());
  }

  std::vector<std::pair<uint64_t, CfiState>> rows;

 private:
  std::vector<uint8_t> cie_code_, code_;
  FrameSection section_;
  Cie cie_;
  Fde fde_;
  CfiState initial_;
  CfiMachine machine_;
};

const std::vector<uint8_t> kStart = {0x0c, 7, 8, 0x90, 1};  // CFA = rsp + 8, return address at CFA - 8

TEST(CfiMachine, function_starts_with_what_its_cie_says) {
  const Executed run(kStart, {});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].first, 0u);
  EXPECT_EQ(run.rows[0].second.cfa, (Cfa{Cfa::reg, 7, 8, 0}));
  EXPECT_EQ(run.rows[0].second.ra, (Saved{Saved::at_cfa, kPush}));
  EXPECT_EQ(run.rows[0].second.fp, Saved{});
}

TEST(CfiMachine, every_step_of_the_location_ends_a_row) {
  // push %rbp after 1 byte, mov %rsp, %rbp 3 further on
  const Executed run(kStart, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6});
  ASSERT_EQ(run.rows.size(), 3u);
  EXPECT_EQ(run.rows[1].first, 1u);
  EXPECT_EQ(run.rows[1].second.cfa.offset, 16);
  EXPECT_EQ(run.rows[1].second.fp, (Saved{Saved::at_cfa, 2 * kPush}));
  EXPECT_EQ(run.rows[2].first, 4u);
  EXPECT_EQ(run.rows[2].second.cfa, (Cfa{Cfa::reg, 6, 16, 0}));
}

TEST(CfiMachine, restored_register_is_as_the_cie_had_it) {
  const Executed run(kStart, {0x86, 2, 0x41, 0xc6, 0x90, 5, 0x41, 0xd0});
  ASSERT_EQ(run.rows.size(), 3u);
  EXPECT_EQ(run.rows[0].second.fp, (Saved{Saved::at_cfa, 2 * kPush}));
  EXPECT_EQ(run.rows[1].second.fp, Saved{});
  EXPECT_EQ(run.rows[1].second.ra, (Saved{Saved::at_cfa, 5 * kPush}));
  EXPECT_EQ(run.rows[2].second.ra, (Saved{Saved::at_cfa, kPush}));
}

TEST(CfiMachine, location_beyond_the_function_ends_it_and_backwards_too) {
  const Executed beyond(kStart, {0x41, 0x04, 0xff, 0xff, 0xff, 0x7f, 0x0e, 32});
  EXPECT_EQ(beyond.rows.back().first, 1u);
  EXPECT_EQ(beyond.rows.back().second.cfa.offset, 8);
  // DW_CFA_set_loc of 8 bytes, to before the function
  const Executed backwards(kStart, {0x41, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0x0e, 32});
  EXPECT_EQ(backwards.rows.back().first, 1u);
  EXPECT_EQ(backwards.rows.back().second.cfa.offset, 8);
}

TEST(CfiMachine, unknown_instruction_and_states_never_remembered_end_the_run) {
  for (const std::vector<uint8_t>& code :
       {std::vector<uint8_t>{0x3f, 0x0e, 32}, {0x0b, 0x0e, 32}, {0x0e}, {0x0f, 200, 1}}) {
    const Executed run(kStart, code);
    ASSERT_EQ(run.rows.size(), 1u);
    EXPECT_NE(run.rows[0].second.cfa.offset, 32);
  }
  // remember_state without end
  const Executed nested(kStart, std::vector<uint8_t>(1000, 0x0a));
  EXPECT_EQ(nested.rows.size(), 1u);
}

TEST(CfiMachine, instructions_of_a_cie_have_no_location) {
  std::vector<uint8_t> cie = kStart;
  cie.insert(cie.end(), {0x41, 0x0e, 32});
  const Executed run(cie, {});
  EXPECT_EQ(run.rows[0].second.cfa.offset, 8);
}

TEST(CfiMachine, registers_saved_elsewhere_are_unknown_and_so_is_the_rule) {
  const DwarfRegisters registers = *registers_of(EM_X86_64);
  const Executed run(kStart,
                     {0x09, 6, 0, 0x41, 0x09, 6, 6, 0x41, 0x0c, 10, 0});  // rbp in rax; in rbp; CFA = r10
  ASSERT_EQ(run.rows.size(), 3u);
  EXPECT_EQ(rule_of(run.rows[0].second, false, registers).fp, FpRule::unknown);
  EXPECT_EQ(rule_of(run.rows[1].second, false, registers).fp, FpRule::same);
  EXPECT_EQ(rule_of(run.rows[2].second, false, registers).kind, RuleKind::none);
  EXPECT_EQ(rule_of(run.rows[2].second, true, registers).kind, RuleKind::signal);
}

TEST(CfiMachine, machine_that_is_not_followed_has_no_registers) {
  EXPECT_FALSE(registers_of(EM_RISCV).has_value());
  EXPECT_TRUE(registers_of(EM_AARCH64)->ra_in_register);
}

}  // namespace
}  // namespace phlox::unwind
