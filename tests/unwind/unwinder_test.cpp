#include "phlox/unwind/unwinder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "phlox/unwind/arch/aarch64.h"
#include "phlox/unwind/arch/x86_64.h"
#include "support/elf_builder.h"
#include "support/frame_bytes.h"

namespace phlox::unwind {
namespace {

using test::FrameBytes;

// A process of one module at bias 0x400000 whose functions are described by hand, and a stack of words.
class Process {
 public:
  static constexpr uint64_t kBias = 0x400000;
  static constexpr uint64_t kStack = 0x7ffe0000;
  explicit Process(uint16_t machine = EM_X86_64) : machine_(machine) {
    cie_ = machine == EM_X86_64 ? cfi.cie({0x0c, 7, 8, 0x90, 1}) : cfi.cie({0x0c, 31, 0}, "", 0, 30);
  }
  // A function at image address `start` (0x100 bytes) with these instructions from its first byte on.
  void function(uint64_t start, std::vector<uint8_t> instructions) {
    cfi.fde(cie_, start, 0x100, std::move(instructions));
  }
  void word(uint64_t at, uint64_t value) {
    const size_t index = (at - kStack) / 8;
    if (words_.size() <= index) words_.resize(index + 1);
    words_[index] = value;
  }
  static uint64_t code(uint64_t image) { return kBias + image; }

  NativeStack unwind(Registers registers) {
    table_ = cfi.table(machine_);
    ModuleMap map;
    map.add(RemoteAddress(kBias), RemoteAddress(kBias + 0x100000), late_bias ? 0 : kBias, 0);
    map.add(RemoteAddress(0x900000), RemoteAddress(0x910000), 0, kNoModule);
    Rule trampoline;
    trampoline.kind = RuleKind::plain;
    trampoline.cfa_offset = 16;
    trampoline.ra_offset = -8;
    map.add_code(RemoteAddress(0x920000), RemoteAddress(0x930000), trampoline);
    if (vdso != 0) map.add(RemoteAddress(vdso), RemoteAddress(vdso + 0x1000), 0, kNoModule);
    map.settle();
    std::unique_ptr<CodeRules> rules;
    if (!code_image.empty()) rules = std::make_unique<CodeRules>(*elf::ElfFile::parse(code_image), &table_);
    Unwinder unwinder(
        map, machine_,
        [this, &map](uint32_t module) {
          if (late_bias) map.set_bias(module, kBias);
          return &table_;
        },
        [&rules](uint32_t) { return rules.get(); });
    UnwindInput input;
    input.registers = registers;
    input.stack_start = RemoteAddress(kStack);
    input.stack = std::as_bytes(std::span(words_));
    input.restarts = restarts;
    input.read_more = more;
    if (read_code) {
      // Every return address of these tests follows a call, but for those ending in 0xf.
      input.read_code = [this](RemoteAddress where, std::span<std::byte> into) {
        const uint64_t end = where.value + into.size();
        if (machine_ == EM_AARCH64) {
          const uint32_t last = end % 16 == 15 ? 0xd503201f : 0x94000000;  // nop, bl
          if (into.size() >= sizeof last) std::memcpy(&into[into.size() - sizeof last], &last, sizeof last);
          return true;
        }
        std::fill(into.begin(), into.end(), std::byte{0x90});
        if (end % 16 == 15 || into.size() < 5) return true;
        into[into.size() - 5] = std::byte{0xe8};
        const auto called = calls.find(end);
        const auto distance = static_cast<int32_t>(called == calls.end() ? 0x70000000 : called->second - end);
        std::memcpy(into.data() + into.size() - 4, &distance, 4);
        return true;
      };
    }
    NativeStack out;
    unwinder.unwind(input, out);
    if (remap) {
      remap(map);
      unwinder.unwind(input, out);
    }
    return out;
  }

  FrameBytes cfi;
  std::vector<std::byte> code_image;  // an ELF file whose code is followed where cfi says nothing
  uint64_t vdso = 0;                  // where one more page of code is mapped; 0: none is
  bool late_bias = false;             // known when the module's table is asked for
  std::vector<Restart> restarts;
  std::function<bool(RemoteAddress, uint64_t&)> more;
  bool read_code = true;
  std::map<uint64_t, uint64_t> calls;     // by return address: the function called
  std::function<void(ModuleMap&)> remap;  // the same stack is unwound again behind it

 private:
  uint16_t machine_;
  size_t cie_;
  UnwindTable table_;
  std::vector<uint64_t> words_;
};

Registers at(uint64_t pc, uint64_t sp, uint64_t fp = 0) {
  return {RemoteAddress(pc), RemoteAddress(sp), fp, 0, true, false};
}

std::vector<uint64_t> pcs(const NativeStack& stack) {
  std::vector<uint64_t> out;
  for (const auto& frame : stack.frames) out.push_back(frame.pc.value);
  return out;
}

constexpr uint64_t kStack = Process::kStack;
// _start: undefined return address; main: 24 bytes of locals; leaf: none.
Process three_functions() {
  Process p;
  p.function(0x1000, {0x07, 16});
  p.function(0x2000, {0x0e, 32});
  p.function(0x3000, {});
  p.word(kStack, Process::code(0x2010));
  p.word(kStack + 8 + 24, Process::code(0x1010));
  p.word(kStack + 64, 0);
  return p;
}

TEST(Unwinder, frames_own_the_stack_between_sp_and_cfa) {
  Process p = three_functions();
  const NativeStack stack = p.unwind(at(Process::code(0x3000), kStack));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(pcs(stack),
            (std::vector<uint64_t>{Process::code(0x3000), Process::code(0x2010), Process::code(0x1010)}));
  EXPECT_EQ(stack.frames[0].cfa, RemoteAddress(kStack + 8));
  EXPECT_EQ(stack.frames[1].sp, RemoteAddress(kStack + 8));
  EXPECT_EQ(stack.frames[1].cfa, RemoteAddress(kStack + 40));
  EXPECT_EQ(stack.frames[1].found_by, FoundBy::cfi);
  EXPECT_FALSE(stack.frames[1].exact_pc);
  EXPECT_TRUE(stack.frames[0].exact_pc);
}

TEST(Unwinder, return_address_after_a_function_s_last_byte_is_looked_up_inside_it) {
  Process p = three_functions();
  p.word(kStack, Process::code(0x2100));  // main calls a function that never returns, as its last instruction
  const NativeStack stack = p.unwind(at(Process::code(0x3000), kStack));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(stack.frames.size(), 3u);
}

TEST(Unwinder, dump_that_ends_early_is_completed_or_said) {
  Process p = three_functions();
  p.function(0x4000, {0x0e, 0x80, 0x40});  // 8 KiB of locals
  p.word(kStack, Process::code(0x4010));
  NativeStack stack = p.unwind(at(Process::code(0x3000), kStack));
  EXPECT_EQ(stack.end, StackEnd::truncated);
  EXPECT_EQ(stack.frames.size(), 2u);
  p.more = [](RemoteAddress where, uint64_t& value) {
    value = where == RemoteAddress(kStack + 8 + 8192 - 8) ? Process::code(0x1010) : 0;
    return true;
  };
  stack = p.unwind(at(Process::code(0x3000), kStack));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(stack.frames.size(), 3u);
  EXPECT_EQ(stack.read_more, 1u);
}

TEST(Unwinder, word_that_is_no_code_address_ends_the_stack) {
  Process p = three_functions();
  p.word(kStack + 32, 0x1234);
  const NativeStack stack = p.unwind(at(Process::code(0x3000), kStack));
  EXPECT_EQ(stack.end, StackEnd::bad_memory);
  EXPECT_EQ(stack.frames.size(), 2u);
}

TEST(Unwinder, code_without_cfi_is_left_by_its_frame_pointer) {
  Process p = three_functions();
  // In memory without a file at 0x900000: rbp points at {caller's rbp, return address}.
  p.word(kStack + 16, kStack + 56);
  p.word(kStack + 24, Process::code(0x1010));
  const NativeStack stack = p.unwind(at(0x900010, kStack, kStack + 16));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  ASSERT_EQ(stack.frames.size(), 2u);
  EXPECT_EQ(stack.frames[0].module, kNoModule);
  EXPECT_EQ(stack.frames[1].found_by, FoundBy::frame_pointer);
}

// The same with what the pair of words says changed.
NativeStack by_frame_pointer(uint64_t return_address, bool read_code) {
  Process p = three_functions();
  p.word(kStack + 16, kStack + 56);
  p.word(kStack + 24, return_address);
  p.read_code = read_code;
  return p.unwind(at(0x900010, kStack, kStack + 16));
}

TEST(Unwinder, frame_pointer_is_followed_only_to_the_return_address_of_a_call) {
  EXPECT_EQ(by_frame_pointer(Process::code(0x1010), true).frames.size(), 2u);
  EXPECT_EQ(by_frame_pointer(Process::code(0x101f), true).end, StackEnd::no_cfi);  // a pointer to a function
  EXPECT_EQ(by_frame_pointer(0x1234, true).end, StackEnd::no_cfi);
  EXPECT_EQ(by_frame_pointer(Process::code(0x1010), false).end, StackEnd::no_cfi);  // it cannot be known
}

TEST(Unwinder, useless_cfi_yields_to_a_good_frame_pointer) {
  Process p = three_functions();
  p.function(0x4000, {0x0e, 32});  // BOLT left the rule of another path: 24 bytes too many
  p.word(kStack + 16, kStack + 56);
  p.word(kStack + 24, Process::code(0x1010));
  NativeStack stack = p.unwind(at(Process::code(0x4010), kStack - 8, kStack + 16));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  ASSERT_EQ(stack.frames.size(), 2u);
  EXPECT_EQ(stack.frames[1].pc, RemoteAddress(Process::code(0x1010)));
  EXPECT_EQ(stack.frames[1].found_by, FoundBy::frame_pointer);
  EXPECT_EQ(p.unwind(at(Process::code(0x4010), kStack - 8, 12345)).end, StackEnd::bad_memory);
}

TEST(Unwinder, cfa_by_rbx_and_rbx_saved_by_its_callee) {
  Process p = three_functions();
  p.function(0x4000, {0x0e, 16, 0x83, 2, 0x0d, 3});  // the linker's trampoline: CFA = rbx + 16
  p.function(0x5000, {0x0e, 24, 0x83, 2});           // its callee saved rbx at CFA - 16
  p.word(kStack, 0);
  p.word(kStack + 8, kStack + 32);  // rbx
  p.word(kStack + 16, Process::code(0x4010));
  p.word(kStack + 32, 7);
  p.word(kStack + 40, Process::code(0x1010));
  Registers registers = at(Process::code(0x5010), kStack);
  NativeStack stack = p.unwind(registers);
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(pcs(stack),
            (std::vector<uint64_t>{Process::code(0x5010), Process::code(0x4010), Process::code(0x1010)}));
  EXPECT_EQ(stack.frames[1].cfa, RemoteAddress(kStack + 48));
  // The innermost frame has it in the register, if that is known.
  registers = at(Process::code(0x4010), kStack);
  EXPECT_EQ(p.unwind(registers).end, StackEnd::no_cfi);
  registers.bx = kStack + 32;
  registers.bx_known = true;
  EXPECT_EQ(p.unwind(registers).end, StackEnd::reached_end);
}

TEST(Unwinder, trampoline_that_was_called_through_is_left_by_its_rule) {
  Process p = three_functions();
  p.word(kStack, 0x920006);  // leaf() returns into it; it keeps 8 bytes and the return address
  p.word(kStack + 16, Process::code(0x1010));
  const NativeStack stack = p.unwind(at(Process::code(0x3000), kStack, 12345));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(pcs(stack), (std::vector<uint64_t>{Process::code(0x3000), 0x920006, Process::code(0x1010)}));
  EXPECT_EQ(stack.frames[1].module, kNoModule);
  EXPECT_EQ(stack.frames[1].cfa, RemoteAddress(kStack + 24));
}

#if defined(__x86_64__)
// push %rbx; sub $16, %rsp; nop; add $16, %rsp; pop %rbx; ret at 0x5000, without call frame information.
NativeStack by_instructions(uint64_t return_address) {
  Process p = three_functions();
  const uint8_t code[] = {0x53, 0x48, 0x83, 0xec, 0x10, 0x90, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3};
  const auto bytes = std::as_bytes(std::span(code));
  test::ElfBuilder builder;
  builder.load(0x5000, {bytes.begin(), bytes.end()}, PF_R | PF_X);
  builder.header.e_entry = 0x5000;
  p.code_image = builder.build();
  p.word(kStack + 8, Process::code(0x2010));  // a local that looks like it
  p.word(kStack + 24, return_address);
  return p.unwind(at(Process::code(0x5005), kStack, 12345));
}

TEST(Unwinder, code_without_cfi_is_left_by_its_instructions) {
  const NativeStack stack = by_instructions(Process::code(0x1010));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(pcs(stack), (std::vector<uint64_t>{Process::code(0x5005), Process::code(0x1010)}));
  EXPECT_EQ(stack.frames[1].found_by, FoundBy::code);
  EXPECT_EQ(stack.frames[0].cfa, RemoteAddress(kStack + 32));
}

TEST(Unwinder, instructions_lead_only_behind_a_call) {
  EXPECT_EQ(by_instructions(Process::code(0x101f)).end, StackEnd::no_cfi);
  EXPECT_EQ(by_instructions(0x1234).end, StackEnd::bad_memory);
  EXPECT_EQ(by_instructions(0).end, StackEnd::bad_memory);  // and not for the start of a thread
}
#endif

TEST(Unwinder, bias_of_a_module_may_be_known_when_a_stack_leads_there) {
  Process p = three_functions();
  p.late_bias = true;
  const NativeStack stack = p.unwind(at(Process::code(0x3000), kStack));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(stack.frames.size(), 3u);
}

TEST(Unwinder, what_was_known_of_an_address_ends_with_the_map) {
  Process p = three_functions();
  p.remap = [](ModuleMap& map) { map.clear(); };
  const NativeStack stack = p.unwind(at(Process::code(0x3000), kStack));
  EXPECT_EQ(stack.end, StackEnd::no_cfi);
  EXPECT_EQ(stack.frames.size(), 1u);
}

// A thread asleep in a function that keeps its frame by rbp, which the kernel does not tell.
Process asleep() {
  Process p = three_functions();
  p.function(0x4000, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6});  // push %rbp; mov %rsp, %rbp
  p.word(kStack, Process::code(0x2010));                         // an argument that is a return address
  p.word(kStack + 8, 5);
  p.word(kStack + 16, 0x77);
  p.word(kStack + 24, Process::code(0x1010));
  p.calls[Process::code(0x2010)] = Process::code(0x3000);
  p.calls[Process::code(0x1010)] = Process::code(0x4000);
  return p;
}

Registers asleep_at(uint64_t pc) {
  Registers registers = at(pc, kStack);
  registers.fp_known = false;
  return registers;
}

TEST(Unwinder, frame_pointer_that_is_not_known_is_found_behind_the_call_of_this_function) {
  Process p = asleep();
  const NativeStack stack = p.unwind(asleep_at(Process::code(0x4010)));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(pcs(stack), (std::vector<uint64_t>{Process::code(0x4010), Process::code(0x1010)}));
  EXPECT_EQ(stack.frames[0].cfa, RemoteAddress(kStack + 32));
  EXPECT_EQ(stack.frames[1].found_by, FoundBy::frame_pointer);
}

TEST(Unwinder, frame_pointer_that_no_call_of_this_function_shows_stays_unknown) {
  Process p = asleep();
  p.calls[Process::code(0x1010)] = Process::code(0x3000);  // another function
  EXPECT_EQ(p.unwind(asleep_at(Process::code(0x4010))).end, StackEnd::no_cfi);
  p.calls[Process::code(0x1010)] = Process::code(0x4008);  // not where one begins
  EXPECT_EQ(p.unwind(asleep_at(Process::code(0x4010))).end, StackEnd::no_cfi);
  p = asleep();
  p.read_code = false;
  EXPECT_EQ(p.unwind(asleep_at(Process::code(0x4010))).end, StackEnd::no_cfi);
}

#if defined(__x86_64__)
// Asleep in a function that counts from rbp as above, called by way of a table: push %rbp; mov %rsp, %rbp;
// push %rbx; sub $0x48, %rsp; syscall; add $0x48, %rsp; pop %rbx; pop %rbp; ret. What moves the stack pointer
// from `push %rbx` on no call frame information says.
NativeStack asleep_in_instructions(std::vector<uint8_t> code, uint64_t return_address) {
  Process p = three_functions();
  p.function(0x4000, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6});
  const auto bytes = std::as_bytes(std::span(code));
  test::ElfBuilder builder;
  builder.load(0x4000, {bytes.begin(), bytes.end()}, PF_R | PF_X);
  builder.header.e_entry = 0x4000;
  p.code_image = builder.build();
  p.word(kStack + 8, Process::code(0x2010));  // a local that looks like it
  p.word(kStack + 0x50, 0x77);                // the caller's rbp
  p.word(kStack + 0x58, return_address);
  return p.unwind(asleep_at(Process::code(0x400b)));
}

const std::vector<uint8_t> kAsleep = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x48,
                                      0x0f, 0x05, 0x48, 0x83, 0xc4, 0x48, 0x5b, 0x5d, 0xc3};

TEST(Unwinder, an_unknown_frame_pointer_is_not_needed_if_the_instructions_suffice) {
  const NativeStack stack = asleep_in_instructions(kAsleep, Process::code(0x1010));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(pcs(stack), (std::vector<uint64_t>{Process::code(0x400b), Process::code(0x1010)}));
  EXPECT_EQ(stack.frames[0].cfa, RemoteAddress(kStack + 0x60));
  EXPECT_EQ(stack.frames[1].found_by, FoundBy::code);
}

TEST(Unwinder, instructions_in_place_of_a_frame_pointer_lead_only_behind_a_call) {
  EXPECT_EQ(asleep_in_instructions(kAsleep, Process::code(0x100f)).end, StackEnd::no_cfi);
}

TEST(Unwinder, instructions_that_move_the_stack_by_an_unknown_amount_prove_nothing) {
  std::vector<uint8_t> code = kAsleep;
  code[5] = 0x48, code[6] = 0x29, code[7] = 0xc4, code[8] = 0x90;  // sub %rax, %rsp
  EXPECT_EQ(asleep_in_instructions(code, Process::code(0x1010)).end, StackEnd::no_cfi);
  EXPECT_EQ(asleep_in_instructions({0x90, 0x90}, Process::code(0x1010)).end, StackEnd::no_cfi);
}
#endif

TEST(Unwinder, frame_pointer_that_is_a_number_is_not_followed) {
  Process p = three_functions();
  const NativeStack stack = p.unwind(at(0x900010, kStack, 12345));
  EXPECT_EQ(stack.end, StackEnd::no_cfi);
  EXPECT_EQ(stack.frames.size(), 1u);
}

TEST(Unwinder, stack_is_taken_up_again_at_the_next_python_entry) {
  Process p = three_functions();
  // The loop's frame ends at kStack + 40; its anchor lies 24 below.
  p.restarts = {{RemoteAddress(kStack + 16), RemoteAddress(kStack + 40), -8, 0}};
  const NativeStack stack = p.unwind(at(0x900010, kStack, 12345));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(pcs(stack), (std::vector<uint64_t>{0x900010, 0, Process::code(0x1010)}));
  EXPECT_EQ(stack.frames[1].found_by, FoundBy::restart);
  EXPECT_EQ(stack.frames[1].cfa, RemoteAddress(kStack + 40));
}

TEST(Unwinder, popped_frame_pointer_below_sp_is_taken_from_the_register) {
  Process p;
  p.function(0x1000, {0x07, 16});
  p.function(0x2000, {0x0d, 6, 0x0e, 16, 0x86, 2});  // main: CFA = rbp + 16
  // leaf in its epilogue, after pop %rbp: CFA = rsp + 8, "rbp at cfa-16" is still in force, and is below the
  // bytes we have.
  p.function(0x3000, {0x86, 2});
  p.word(kStack, Process::code(0x2010));
  p.word(kStack + 32, 0);
  p.word(kStack + 40, Process::code(0x1010));
  const NativeStack stack = p.unwind(at(Process::code(0x3000), kStack, kStack + 32));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(stack.frames.size(), 3u);
}

TEST(Unwinder, stack_that_does_not_shrink_ends) {
  Process p;
  p.function(0x2000, {0x0d, 6, 0x0e, 0});  // CFA = rbp
  p.word(kStack, 0);
  p.word(kStack + 8, Process::code(0x2010));
  const NativeStack stack = p.unwind(at(Process::code(0x2000), kStack + 16, kStack + 16));
  EXPECT_EQ(stack.end, StackEnd::bad_memory);
}

TEST(Unwinder, endless_stack_ends_at_the_cap) {
  Process p;
  p.function(0x3000, {});
  p.more = [](RemoteAddress, uint64_t& value) {
    value = Process::code(0x3010);
    return true;
  };
  const NativeStack stack = p.unwind(at(Process::code(0x3000), kStack));
  EXPECT_EQ(stack.end, StackEnd::too_deep);
  EXPECT_EQ(stack.frames.size(), Unwinder::kMaxFrames);
}

TEST(Unwinder, signal_frame_gives_the_interrupted_registers_and_an_exact_pc) {
  Process p = three_functions();
  const size_t signal = p.cfi.cie({0x0c, 7, 8, 0x90, 1}, "zRS", 0);
  p.cfi.fde(signal, 0x4fff, 0x20, {}, true);
  const uint64_t handler_sp = kStack + 0x100;
  p.word(handler_sp, Process::code(0x5000));  // the handler returns to the trampoline's first byte
  const uint64_t context = handler_sp + 8;
  p.word(context + 120, 77);                     // rbp
  p.word(context + 160, kStack + 0x400);         // rsp
  p.word(context + 168, Process::code(0x3000));  // rip: the first byte of a function
  p.word(kStack + 0x400, Process::code(0x2010));
  p.word(kStack + 0x408 + 24, Process::code(0x1010));
  const NativeStack stack = p.unwind(at(Process::code(0x3080), handler_sp));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(pcs(stack),
            (std::vector<uint64_t>{Process::code(0x3080), Process::code(0x5000), Process::code(0x3000),
                                   Process::code(0x2010), Process::code(0x1010)}));
  EXPECT_EQ(stack.frames[2].found_by, FoundBy::signal);
  EXPECT_TRUE(stack.frames[2].exact_pc);
}

TEST(Unwinder, plt_entry_that_has_pushed_has_one_word_more) {
  Process p = three_functions();
  p.function(0x6000, {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22});
  NativeStack stack = p.unwind(at(Process::code(0x6020), kStack));
  EXPECT_EQ(stack.frames[1].pc, RemoteAddress(Process::code(0x2010)));
  p.word(kStack, 3);  // the number that the entry pushed
  p.word(kStack + 8, Process::code(0x2010));
  p.word(kStack + 16 + 24, Process::code(0x1010));
  stack = p.unwind(at(Process::code(0x602b), kStack));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(stack.frames[1].pc, RemoteAddress(Process::code(0x2010)));
}

TEST(Unwinder, aarch64_leaf_returns_by_its_link_register_once) {
  Process p(EM_AARCH64);
  p.function(0x1000, {0x07, 30});
  p.function(0x2000, {0x0e, 32, 0x9d, 4, 0x9e, 3});
  p.function(0x3000, {});
  p.word(kStack, kStack + 64);
  p.word(kStack + 8, 0xab'0000'0000'0000 | Process::code(0x1010));  // with a pointer authentication code
  p.word(kStack + 64, 0);
  Registers registers = at(Process::code(0x3000), kStack, kStack);
  registers.lr = Process::code(0x2010);
  registers.lr_known = true;
  const NativeStack stack = p.unwind(registers);
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(pcs(stack),
            (std::vector<uint64_t>{Process::code(0x3000), Process::code(0x2010), Process::code(0x1010)}));
  p.word(kStack + 8, Process::code(0x3010));  // a caller that claims to be a leaf: its link register is gone
  EXPECT_EQ(p.unwind(registers).end, StackEnd::bad_memory);
}

TEST(Unwinder, aarch64_s_authentication_codes_begin_above_the_addresses_of_its_kernel) {
  for (const int bits : {36, 39, 42, 47, 48}) {
    Process p(EM_AARCH64);
    p.function(0x1000, {0x07, 30});
    p.function(0x2000, {0x0e, 32, 0x9d, 4, 0x9e, 3});
    p.vdso = (uint64_t{1} << bits) - 0x10000;
    const uint64_t code = ((uint64_t{1} << 55) - 1) & ~((uint64_t{1} << bits) - 1);
    p.word(kStack, 0);
    p.word(kStack + 8, code | Process::code(0x1010));
    const NativeStack stack = p.unwind(at(Process::code(0x2010), kStack, kStack));
    EXPECT_EQ(stack.end, StackEnd::reached_end) << bits;
    EXPECT_EQ(pcs(stack), (std::vector<uint64_t>{Process::code(0x2010), Process::code(0x1010)})) << bits;
  }
}

// Where the pair of words lies in its frame is up to the compiler: gcc puts it at the end that is further in.
TEST(Unwinder, aarch64s_frame_pointer_does_not_give_the_end_of_its_frame) {
  Process p(EM_AARCH64);
  p.function(0x1000, {0x07, 30});
  p.function(0x2000, {0x0e, 32, 0x9d, 4, 0x9e, 3});
  p.word(kStack + 16, kStack + 80);
  p.word(kStack + 24, Process::code(0x2010));
  p.word(kStack + 40,
         Process::code(0x1050));  // of the same frame; where x30 were if it ended behind the pair
  p.word(kStack + 80, 0);
  p.word(kStack + 88, Process::code(0x1010));
  const NativeStack stack = p.unwind(at(0x900010, kStack, kStack + 16));
  EXPECT_EQ(stack.end, StackEnd::reached_end);
  EXPECT_EQ(pcs(stack), (std::vector<uint64_t>{0x900010, Process::code(0x2010), Process::code(0x1010)}));
  EXPECT_EQ(stack.frames.back().found_by, FoundBy::frame_pointer);
}

bool ends_in_call(std::initializer_list<uint8_t> code) {
  std::vector<std::byte> bytes;
  for (const uint8_t byte : code) bytes.push_back(std::byte{byte});
  return X86_64::ends_in_call(bytes);
}

TEST(EndsInCall, every_form_of_x86_64_s_call) {
  EXPECT_TRUE(ends_in_call({0xe8, 1, 2, 3, 4}));
  EXPECT_TRUE(ends_in_call({0x90, 0x90, 0xe8, 1, 2, 3, 4}));
  EXPECT_TRUE(ends_in_call({0xff, 0xd0}));                    // call *%rax
  EXPECT_TRUE(ends_in_call({0x41, 0xff, 0xd4}));              // call *%r12
  EXPECT_TRUE(ends_in_call({0xff, 0x10}));                    // call *(%rax)
  EXPECT_TRUE(ends_in_call({0xff, 0x53, 0x18}));              // call *0x18(%rbx)
  EXPECT_TRUE(ends_in_call({0xff, 0x15, 1, 2, 3, 4}));        // call *f@GOT(%rip)
  EXPECT_TRUE(ends_in_call({0xff, 0x93, 1, 2, 3, 4}));        // call *0x4030201(%rbx)
  EXPECT_TRUE(ends_in_call({0xff, 0x14, 0xc3}));              // call *(%rbx,%rax,8)
  EXPECT_TRUE(ends_in_call({0xff, 0x54, 0xc3, 8}));           // call *8(%rbx,%rax,8)
  EXPECT_TRUE(ends_in_call({0xff, 0x94, 0xc3, 1, 2, 3, 4}));  // call *0x4030201(%rbx,%rax,8)
  EXPECT_TRUE(ends_in_call({0xff, 0x14, 0xc5, 1, 2, 3, 4}));  // call *0x4030201(,%rax,8)
  EXPECT_FALSE(ends_in_call({}));
  EXPECT_FALSE(ends_in_call({0xe8, 1, 2, 3}));
  EXPECT_FALSE(ends_in_call({0xff, 0xe0}));              // jmp *%rax
  EXPECT_FALSE(ends_in_call({0xff, 0x25, 1, 2, 3, 4}));  // jmp *f@GOT(%rip)
  EXPECT_FALSE(ends_in_call({0xc3, 0x90, 0x90, 0x90}));
}

TEST(EndsInCall, aarch64_s_branches_with_link) {
  const auto ends = [](uint32_t instruction) {
    return Aarch64::ends_in_call(std::as_bytes(std::span(&instruction, 1)));
  };
  EXPECT_TRUE(ends(0x94000012));   // bl
  EXPECT_TRUE(ends(0xd63f0200));   // blr x16
  EXPECT_TRUE(ends(0xd73f0a00));   // blraa x16, x0
  EXPECT_FALSE(ends(0x14000012));  // b
  EXPECT_FALSE(ends(0xd61f0200));  // br x16
  EXPECT_FALSE(ends(0xd65f03c0));  // ret
}

TEST(ModuleMap, range_that_overlaps_an_earlier_one_is_dropped) {
  ModuleMap map;
  map.add(RemoteAddress(0x1000), RemoteAddress(0x3000), 0, 1);
  map.add(RemoteAddress(0x2000), RemoteAddress(0x4000), 0, 2);
  map.settle();
  EXPECT_EQ(map.find(RemoteAddress(0x2800))->module, 1u);
  EXPECT_EQ(map.find(RemoteAddress(0x3000)), nullptr);
  EXPECT_EQ(map.find(RemoteAddress(0xfff)), nullptr);
}

}  // namespace
}  // namespace phlox::unwind
