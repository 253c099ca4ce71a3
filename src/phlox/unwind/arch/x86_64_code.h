// The effect of one x86-64 instruction on the stack pointer and on the known values of other registers: only
// as much as unwinding needs. Decoded by Zydis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace phlox::unwind {

// Numbers of the general registers as instructions have them (Intel SDM, volume 2, table 3-1).
inline constexpr uint8_t kRax = 0, kRcx = 1, kRdx = 2, kRbx = 3, kRsp = 4, kRbp = 5, kRsi = 6, kRdi = 7,
                         kR12 = 12, kRegisterCount = 16, kNoRegister = 0xff;

struct Instruction {
  enum Kind : uint8_t {
    invalid,
    other,          // `written` are lost; `size` bytes at *(base + value) too, if there is a base
    push,           // reg, or another operand
    pop,            // into reg, or elsewhere
    move,           // reg = base + value
    load,           // reg = *(base + value)
    store,          // *(base + value) = reg, or another operand; `size` bytes
    add,            // reg += value
    add_register,   // reg += base * value, value being 1 or -1
    align,          // reg &= value, which is negative
    set,            // reg = value
    leave,          // rsp = rbp; pop rbp
    call,           // target
    call_indirect,  // anywhere
    jump,
    jump_indirect,
    branch,  // to target, or to the next instruction
    ret,
    stop,  // control never continues after it
  };
  Kind kind = invalid;
  uint8_t length = 0;
  uint8_t reg = kNoRegister;
  uint8_t base = kNoRegister;
  uint8_t size = 0;
  bool points = false;   // `target` is an address that it computes (lea)
  uint16_t written = 0;  // one bit for each register
  int32_t value = 0;
  int64_t target = 0;  // from the instruction's first byte
};

// A call of the next instruction, which only needs its address, does not count.
inline bool is_call(const Instruction& i) {
  return (i.kind == Instruction::call && i.target != i.length) || i.kind == Instruction::call_indirect;
}

// An indirect jump or call may contain its target.
inline bool jumps(const Instruction& i) {
  return i.kind == Instruction::jump || i.kind == Instruction::branch;
}

// Control never reaches the instruction after it.
inline bool ends_way(const Instruction& i) {
  return i.kind == Instruction::invalid || i.kind == Instruction::stop || i.kind == Instruction::ret ||
         i.kind == Instruction::jump || i.kind == Instruction::jump_indirect;
}

// invalid: no instruction, a truncated one, or a build for another machine.
Instruction decode_x86_64(std::span<const std::byte> code);

}  // namespace phlox::unwind
