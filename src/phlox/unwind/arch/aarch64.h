// aarch64: register numbers, the frame of a signal, pointer authentication.
#pragma once

#include <elf.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace phlox::unwind {

struct Aarch64 {
  static constexpr uint16_t kMachine = EM_AARCH64;
  // DWARF for the Arm 64-bit Architecture, section 4.1.
  static constexpr uint64_t kDwarfFp = 29, kDwarfSp = 31, kDwarfRa = 30;
  static constexpr uint64_t kDwarfBx = ~uint64_t{0};  // none is followed

  // mov x8, #139 (rt_sigreturn); svc #0
  static constexpr std::string_view kSigreturn{"\x68\x11\x80\xd2\x01\x00\x00\xd4", 8};

  // sp points at the rt_sigframe: siginfo 128; ucontext: flags 8, link 8, stack 24, mask 128, padding to 16,
  // then the sigcontext: fault address 8, x0-x30, sp, pc
  // (arch/arm64/include/uapi/asm/{ucontext,sigcontext}.h, arch/arm64/kernel/signal.c, kernel 6.1).
  static constexpr uint64_t kRegisters = 128 + 176 + 8;
  static constexpr uint64_t kSignalFp = kRegisters + 29 * 8, kSignalLr = kRegisters + 30 * 8,
                            kSignalSp = kRegisters + 31 * 8, kSignalPc = kRegisters + 32 * 8;
  static constexpr bool kSignalHasLr = true;
  static constexpr uint64_t kSignalBx = 0;

  // stp x29, x30, [sp, #-N]!; mov x29, sp: caller's fp = *fp, pc = *(fp + 8), sp at least fp + 16.
  static constexpr bool kHasLinkRegister = true;
  // A pointer authentication code is above the bits of a user address: 36, 39, 42, 47, 48 or 52
  // (ARM64_VA_BITS). The kernel maps a program's libraries and its vdso into the upper half of these, so the
  // highest address of code shows how many there are. With 52 (Debian 13), a program gets addresses above 48
  // bits only on request.
  static constexpr uint64_t strip(uint64_t pc, uint64_t highest_code) {
    const auto bits = std::bit_width(highest_code);
    const bool fewer = bits == 36 || bits == 39 || bits == 42 || bits == 47;
    return pc & ((uint64_t{1} << (fewer ? bits : 48)) - 1);
  }

  // The target of the call at the end of these bytes, if the instruction contains it; 0: it does not.
  static uint64_t called_by(std::span<const std::byte> code, uint64_t return_address) {
    uint32_t instruction = 0;
    if (code.size() < 4) return 0;
    std::memcpy(&instruction, code.data() + code.size() - 4, 4);
    if ((instruction & 0xfc000000) != 0x94000000) return 0;
    const auto words = static_cast<int32_t>(instruction << 6) >> 6;
    return return_address - 4 + static_cast<uint64_t>(int64_t{words} * 4);
  }

  // Whether these bytes, up to a return address, end in a call. Arm ARM, C6.2: BL; BLR, BLRAA, BLRAB and
  // their forms with a zero modifier.
  static constexpr size_t kLongestCall = 4, kShortestDirectCall = 4;
  static constexpr int32_t kCfaAtStart = 0;
  static bool ends_in_call(std::span<const std::byte> code) {
    if (code.size() < 4) return false;
    uint32_t instruction = 0;
    std::memcpy(&instruction, code.data() + code.size() - 4, 4);
    return (instruction & 0xfc000000) == 0x94000000 || (instruction & 0xfefff000) == 0xd63f0000;
  }
};

}  // namespace phlox::unwind
