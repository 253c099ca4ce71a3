// x86-64: register numbers, the frame of a signal, the layout of a frame with a frame pointer.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace phlox::unwind {

struct X86_64 {
  static constexpr uint16_t kMachine = EM_X86_64;
  // psABI, figure 3.36: DWARF register number mapping.
  static constexpr uint64_t kDwarfFp = 6, kDwarfSp = 7, kDwarfRa = 16;
  static constexpr uint64_t kDwarfBx = 3;

  // mov $15 (rt_sigreturn), %rax; syscall
  static constexpr std::string_view kSigreturn{"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9};

  // In the trampoline sp points at the ucontext: flags 8, link 8, stack 24, then r8-r15, rdi, rsi, rbp, rbx,
  // rdx, rax, rcx, rsp, rip (arch/x86/include/uapi/asm/{ucontext,sigcontext}.h, kernel 6.1).
  static constexpr uint64_t kSignalFp = 40 + 10 * 8, kSignalSp = 40 + 15 * 8, kSignalPc = 40 + 16 * 8;
  static constexpr uint64_t kSignalBx = 40 + 11 * 8;
  static constexpr bool kSignalHasLr = false;
  static constexpr uint64_t kSignalLr = 0;

  // push %rbp; mov %rsp, %rbp: caller's fp = *fp, pc = *(fp + 8), sp = fp + 16.
  static constexpr bool kHasLinkRegister = false;
  // A stack word as a code address.
  static constexpr uint64_t strip(uint64_t pc, uint64_t) { return pc; }

  // The target of the call at the end of these bytes, if the instruction contains it; 0: it does not.
  static uint64_t called_by(std::span<const std::byte> code, uint64_t return_address) {
    if (code.size() < 5 || std::to_integer<uint8_t>(code[code.size() - 5]) != 0xe8) return 0;
    int32_t distance = 0;
    std::memcpy(&distance, code.data() + code.size() - 4, 4);
    return return_address + static_cast<uint64_t>(int64_t{distance});
  }

  // Whether these bytes, up to a return address, end in a call. Intel SDM, volume 2, CALL: E8 with 4 bytes of
  // distance, or FF with a ModRM byte of /2, which says how many follow. Prefixes come before and do not
  // matter.
  static constexpr size_t kLongestCall = 7, kShortestDirectCall = 5;
  static constexpr int32_t kCfaAtStart = 8;
  static bool ends_in_call(std::span<const std::byte> code) {
    const size_t size = code.size();
    const auto at = [&](size_t back) { return std::to_integer<uint8_t>(code[size - back]); };
    if (size >= 5 && at(5) == 0xe8) return true;
    for (size_t back = 2; back <= size && back <= kLongestCall; ++back) {
      if (at(back) != 0xff || (at(back - 1) >> 3 & 7) != 2) continue;
      const uint8_t mode = at(back - 1) >> 6, base = at(back - 1) & 7;
      size_t length = 2;
      if (mode != 3 && base == 4) {
        if (back < 3) continue;
        ++length;  // SIB
        if (mode == 0 && (at(back - 2) & 7) == 5) length += 4;
      }
      if (mode == 1) length += 1;
      if (mode == 2 || (mode == 0 && base == 5)) length += 4;
      if (length == back) return true;
    }
    return false;
  }
};

}  // namespace phlox::unwind
