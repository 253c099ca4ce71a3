#include "phlox/unwind/arch/x86_64_code.h"

#if defined(__x86_64__)
#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <limits>
#endif

namespace phlox::unwind {

#if defined(__x86_64__)
namespace {

// Zydis 3 and 4 store operands differently; 4 says how many can be visible.
struct Decoded {
  ZydisDecodedInstruction instruction;
#ifdef ZYDIS_MAX_OPERAND_COUNT_VISIBLE
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operand_bytes;
  const ZydisDecodedOperand& operand(size_t i) const {
    return operand_bytes[i];
  }
#else
  const ZydisDecodedOperand& operand(size_t i) const {
    return instruction.operands[i];
  }
#endif
};

const ZydisDecoder& decoder() {
  static const ZydisDecoder made = [] {
    ZydisDecoder d;
#ifdef ZYDIS_MAX_OPERAND_COUNT_VISIBLE
    ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
#else
    ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_ADDRESS_WIDTH_64);
#endif
    return d;
  }();
  return made;
}

bool decode(std::span<const std::byte> code, Decoded& out) {
#ifdef ZYDIS_MAX_OPERAND_COUNT_VISIBLE
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), code.data(), code.size(), &out.instruction,
                                             out.operand_bytes.data()));
#else
  return ZYAN_SUCCESS(ZydisDecoderDecodeBuffer(&decoder(), code.data(), code.size(), &out.instruction));
#endif
}

bool fits(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
}

// The general register that it is, or is part of.
uint8_t general(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64) return kNoRegister;
  const auto id = ZydisRegisterGetId(whole);
  return id >= 0 && id < kRegisterCount ? static_cast<uint8_t>(id) : kNoRegister;
}

bool is_register(const ZydisDecodedOperand& o) {
  return o.type == ZYDIS_OPERAND_TYPE_REGISTER && general(o.reg.value) != kNoRegister;
}

bool is_immediate(const ZydisDecodedOperand& o) {
  return o.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && fits(o.imm.value.s);
}

// Memory at an offset from one register; with a segment or an index it is elsewhere.
bool is_memory(const ZydisDecodedOperand& o) {
  return o.type == ZYDIS_OPERAND_TYPE_MEMORY && o.mem.index == ZYDIS_REGISTER_NONE &&
         ZydisRegisterGetClass(o.mem.base) == ZYDIS_REGCLASS_GPR64 && o.mem.segment != ZYDIS_REGISTER_FS &&
         o.mem.segment != ZYDIS_REGISTER_GS && fits(o.mem.disp.value);
}

void take_memory(const ZydisDecodedOperand& o, Instruction& out) {
  out.base = general(o.mem.base);
  out.value = static_cast<int32_t>(o.mem.disp.value);
  out.size = static_cast<uint8_t>(std::min<unsigned>(o.size / 8, 255));
}

bool is_conditional(const Decoded& d) {
  return d.instruction.meta.category == ZYDIS_CATEGORY_COND_BR;
}

void take_written(const Decoded& d, Instruction& out) {
  for (size_t i = 0; i < d.instruction.operand_count; ++i) {
    const ZydisDecodedOperand& o = d.operand(i);
    if ((o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
    if (is_register(o)) out.written |= static_cast<uint16_t>(1U << general(o.reg.value));
    if (is_memory(o)) take_memory(o, out);
  }
}

// The target of a jump or call, if the instruction contains it.
bool take_target(const Decoded& d, Instruction& out) {
  const ZydisDecodedOperand& o = d.operand(0);
  if (o.type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !o.imm.is_relative) return false;
  out.target = d.instruction.length + o.imm.value.s;
  return true;
}

}  // namespace

Instruction decode_x86_64(std::span<const std::byte> code) {
  Instruction out;
  Decoded d;
  if (code.empty() || !decode(code, d)) return out;
  const auto& instruction = d.instruction;
  out.length = instruction.length;
  out.kind = Instruction::other;
  const ZydisDecodedOperand &first = d.operand(0), &second = d.operand(1);
  const bool two = instruction.operand_count >= 2;
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_RET:
      out.kind = Instruction::ret;
      return out;
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT:
      out.kind = Instruction::stop;
      return out;
    case ZYDIS_MNEMONIC_CALL:
      out.kind = take_target(d, out) ? Instruction::call : Instruction::call_indirect;
      return out;
    case ZYDIS_MNEMONIC_JMP:
      out.kind = take_target(d, out) ? Instruction::jump : Instruction::jump_indirect;
      return out;
    case ZYDIS_MNEMONIC_LEAVE:
      out.kind = Instruction::leave;
      return out;
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHFQ:
      if (instruction.operand_width != 64) break;
      out.kind = Instruction::push;
      if (instruction.mnemonic == ZYDIS_MNEMONIC_PUSH && is_register(first))
        out.reg = general(first.reg.value);
      return out;
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPFQ:
      if (instruction.operand_width != 64) break;
      out.kind = Instruction::pop;
      if (instruction.mnemonic == ZYDIS_MNEMONIC_POP && is_register(first))
        out.reg = general(first.reg.value);
      return out;
    case ZYDIS_MNEMONIC_MOV:
      if (!two) break;
      if (is_register(first) && first.size == 64 && is_register(second)) {
        out.kind = Instruction::move;
        out.reg = general(first.reg.value);
        out.base = general(second.reg.value);
        return out;
      }
      if (is_register(first) && first.size == 64 && is_memory(second)) {
        out.kind = Instruction::load;
        out.reg = general(first.reg.value);
        take_memory(second, out);
        return out;
      }
      if (is_memory(first)) {
        out.kind = Instruction::store;
        take_memory(first, out);
        if (first.size == 64 && is_register(second)) out.reg = general(second.reg.value);
        return out;
      }
      if (is_register(first) && first.size >= 32 && is_immediate(second)) {
        out.kind = Instruction::set;
        out.reg = general(first.reg.value);
        out.value = static_cast<int32_t>(second.imm.value.s);
        // The upper half becomes 0, so a negative number would be wrong.
        if (first.size == 64 || out.value >= 0) return out;
        out = {Instruction::other, instruction.length};
      }
      break;
    case ZYDIS_MNEMONIC_LEA:
      if (!two || !is_register(first) || first.size != 64) break;
      if (second.mem.base == ZYDIS_REGISTER_RIP) {
        out.points = true;
        out.target = instruction.length + second.mem.disp.value;
      } else if (second.mem.index == ZYDIS_REGISTER_NONE && fits(second.mem.disp.value) &&
                 ZydisRegisterGetClass(second.mem.base) == ZYDIS_REGCLASS_GPR64) {
        out.kind = Instruction::move;
        out.reg = general(first.reg.value);
        out.base = general(second.mem.base);
        out.value = static_cast<int32_t>(second.mem.disp.value);
        return out;
      }
      break;
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
      if (two && is_register(first) && is_register(second) && first.reg.value == second.reg.value &&
          first.size >= 32) {
        out.kind = Instruction::set;
        out.reg = general(first.reg.value);
        return out;
      }
      [[fallthrough]];
    case ZYDIS_MNEMONIC_ADD: {
      if (instruction.mnemonic == ZYDIS_MNEMONIC_XOR || !two || !is_register(first) || first.size != 64)
        break;
      const bool minus = instruction.mnemonic == ZYDIS_MNEMONIC_SUB;
      if (is_immediate(second) && fits(-second.imm.value.s)) {
        out.kind = Instruction::add;
        out.reg = general(first.reg.value);
        out.value = static_cast<int32_t>(minus ? -second.imm.value.s : second.imm.value.s);
        return out;
      }
      if (is_register(second)) {
        out.kind = Instruction::add_register;
        out.reg = general(first.reg.value);
        out.base = general(second.reg.value);
        out.value = minus ? -1 : 1;
        return out;
      }
      break;
    }
    case ZYDIS_MNEMONIC_AND:
      if (two && is_register(first) && first.size == 64 && is_immediate(second) && second.imm.value.s < 0) {
        out.kind = Instruction::align;
        out.reg = general(first.reg.value);
        out.value = static_cast<int32_t>(second.imm.value.s);
        return out;
      }
      break;
    default:
      if (is_conditional(d)) {
        out.kind = take_target(d, out) ? Instruction::branch : Instruction::invalid;
        if (out.kind == Instruction::branch) take_written(d, out);  // loop
        return out;
      }
      break;
  }
  take_written(d, out);
  return out;
}

#else

Instruction decode_x86_64(std::span<const std::byte>) {
  return {};
}

#endif

}  // namespace phlox::unwind
