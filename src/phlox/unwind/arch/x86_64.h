// What is particular to x86-64: register numbers, the frame a signal leaves, how a frame pointer's frame
// lies.
#pragma once

#include <elf.h>

#include <cstdint>
#include <string_view>

namespace phlox::unwind {

struct X86_64 {
  static constexpr uint16_t kMachine = EM_X86_64;
  // psABI, figure 3.36: DWARF register number mapping.
  static constexpr uint64_t kDwarfFp = 6, kDwarfSp = 7, kDwarfRa = 16;

  // mov $15 (rt_sigreturn), %rax; syscall
  static constexpr std::string_view kSigreturn{"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9};

  // In the trampoline sp points at the ucontext: flags 8, link 8, stack 24, then r8-r15, rdi, rsi, rbp, rbx,
  // rdx, rax, rcx, rsp, rip (arch/x86/include/uapi/asm/{ucontext,sigcontext}.h, kernel 6.1).
  static constexpr uint64_t kSignalFp = 40 + 10 * 8, kSignalSp = 40 + 15 * 8, kSignalPc = 40 + 16 * 8;
  static constexpr bool kSignalHasLr = false;
  static constexpr uint64_t kSignalLr = 0;

  // push %rbp; mov %rsp, %rbp: caller's fp = *fp, pc = *(fp + 8), sp = fp + 16.
  static constexpr bool kHasLinkRegister = false;
  // A stack word as a code address.
  static constexpr uint64_t strip(uint64_t pc) { return pc; }
};

}  // namespace phlox::unwind
