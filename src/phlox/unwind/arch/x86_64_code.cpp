#include "phlox/unwind/arch/x86_64_code.h"

#if defined(__x86_64__)
#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
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

// Describes an instruction of some mnemonics. False: it has another form, of which only what it writes is
// known.
using Handler = bool (*)(const Decoded& d, Instruction& out);

bool is_whole_register(const ZydisDecodedOperand& o) {
  return is_register(o) && o.size == 64;
}

bool changes(Instruction& out, Instruction::Kind kind, const ZydisDecodedOperand& changed,
             uint8_t base = kNoRegister, int64_t value = 0) {
  out.kind = kind;
  out.reg = general(changed.reg.value);
  out.base = base;
  out.value = static_cast<int32_t>(value);
  return true;
}

template <Instruction::Kind kKind>
bool is_only(const Decoded&, Instruction& out) {
  out.kind = kKind;
  return true;
}

template <Instruction::Kind kDirect, Instruction::Kind kIndirect>
bool transfers(const Decoded& d, Instruction& out) {
  out.kind = take_target(d, out) ? kDirect : kIndirect;
  return true;
}

bool branches(const Decoded& d, Instruction& out) {
  if (d.instruction.meta.category != ZYDIS_CATEGORY_COND_BR) return false;
  transfers<Instruction::branch, Instruction::invalid>(d, out);
  if (out.kind == Instruction::branch) take_written(d, out);  // loop
  return true;
}

// Of flags, no register is known.
template <Instruction::Kind kKind, bool kOfFlags = false>
bool pushes_or_pops(const Decoded& d, Instruction& out) {
  if (d.instruction.operand_width != 64) return false;
  out.kind = kKind;
  if (!kOfFlags && is_register(d.operand(0))) out.reg = general(d.operand(0).reg.value);
  return true;
}

bool moves(const Decoded& d, Instruction& out) {
  const ZydisDecodedOperand &to = d.operand(0), &from = d.operand(1);
  if (is_whole_register(to) && is_register(from))
    return changes(out, Instruction::move, to, general(from.reg.value));
  if (is_whole_register(to) && is_memory(from)) {
    take_memory(from, out);
    return changes(out, Instruction::load, to, out.base, out.value);
  }
  if (is_memory(to)) {
    take_memory(to, out);
    out.kind = Instruction::store;
    if (to.size == 64 && is_register(from)) out.reg = general(from.reg.value);
    return true;
  }
  // The upper half becomes 0, so a negative number would be wrong.
  return is_register(to) && to.size >= 32 && is_immediate(from) && (to.size == 64 || from.imm.value.s >= 0) &&
         changes(out, Instruction::set, to, kNoRegister, from.imm.value.s);
}

bool computes_address(const Decoded& d, Instruction& out) {
  const ZydisDecodedOperand &to = d.operand(0), &from = d.operand(1);
  if (!is_whole_register(to)) return false;
  if (from.mem.base == ZYDIS_REGISTER_RIP) {
    out.points = true;
    out.target = d.instruction.length + from.mem.disp.value;
    return false;
  }
  return from.mem.index == ZYDIS_REGISTER_NONE && fits(from.mem.disp.value) &&
         ZydisRegisterGetClass(from.mem.base) == ZYDIS_REGCLASS_GPR64 &&
         changes(out, Instruction::move, to, general(from.mem.base), from.mem.disp.value);
}

// Of a register and itself: xor, sub.
bool clears(const Decoded& d, Instruction& out) {
  const ZydisDecodedOperand &to = d.operand(0), &from = d.operand(1);
  return is_register(to) && is_register(from) && to.reg.value == from.reg.value && to.size >= 32 &&
         changes(out, Instruction::set, to);
}

template <int kSign>
bool adds(const Decoded& d, Instruction& out) {
  const ZydisDecodedOperand &to = d.operand(0), &from = d.operand(1);
  if (!is_whole_register(to)) return false;
  if (is_immediate(from) && fits(-from.imm.value.s))
    return changes(out, Instruction::add, to, kNoRegister, kSign * from.imm.value.s);
  return is_register(from) && changes(out, Instruction::add_register, to, general(from.reg.value), kSign);
}

bool subtracts(const Decoded& d, Instruction& out) {
  return clears(d, out) || adds<-1>(d, out);
}

bool aligns(const Decoded& d, Instruction& out) {
  const ZydisDecodedOperand &to = d.operand(0), &from = d.operand(1);
  return is_whole_register(to) && is_immediate(from) && from.imm.value.s < 0 &&
         changes(out, Instruction::align, to, kNoRegister, from.imm.value.s);
}

constexpr ZydisMnemonic kStops[] = {
    ZYDIS_MNEMONIC_HLT,    ZYDIS_MNEMONIC_UD0,     ZYDIS_MNEMONIC_UD1,   ZYDIS_MNEMONIC_UD2,
    ZYDIS_MNEMONIC_INT3,   ZYDIS_MNEMONIC_IRET,    ZYDIS_MNEMONIC_IRETD, ZYDIS_MNEMONIC_IRETQ,
    ZYDIS_MNEMONIC_SYSRET, ZYDIS_MNEMONIC_SYSEXIT,
};
constexpr std::pair<ZydisMnemonic, Handler> kHandled[] = {
    {ZYDIS_MNEMONIC_RET, is_only<Instruction::ret>},
    {ZYDIS_MNEMONIC_LEAVE, is_only<Instruction::leave>},
    {ZYDIS_MNEMONIC_CALL, transfers<Instruction::call, Instruction::call_indirect>},
    {ZYDIS_MNEMONIC_JMP, transfers<Instruction::jump, Instruction::jump_indirect>},
    {ZYDIS_MNEMONIC_PUSH, pushes_or_pops<Instruction::push>},
    {ZYDIS_MNEMONIC_PUSHFQ, pushes_or_pops<Instruction::push, true>},
    {ZYDIS_MNEMONIC_POP, pushes_or_pops<Instruction::pop>},
    {ZYDIS_MNEMONIC_POPFQ, pushes_or_pops<Instruction::pop, true>},
    {ZYDIS_MNEMONIC_MOV, moves},
    {ZYDIS_MNEMONIC_LEA, computes_address},
    {ZYDIS_MNEMONIC_XOR, clears},
    {ZYDIS_MNEMONIC_SUB, subtracts},
    {ZYDIS_MNEMONIC_ADD, adds<1>},
    {ZYDIS_MNEMONIC_AND, aligns},
};

// By mnemonic.
constexpr auto kHandlers = [] {
  std::array<Handler, ZYDIS_MNEMONIC_MAX_VALUE + 1> all{};
  all.fill(branches);
  for (const ZydisMnemonic mnemonic : kStops) all[mnemonic] = is_only<Instruction::stop>;
  for (const auto& [mnemonic, handler] : kHandled) all[mnemonic] = handler;
  return all;
}();

}  // namespace

Instruction decode_x86_64(std::span<const std::byte> code) {
  Instruction out;
  Decoded d;
  if (code.empty() || !decode(code, d)) return out;
  out.length = d.instruction.length;
  out.kind = Instruction::other;
  if (!kHandlers[d.instruction.mnemonic](d, out)) take_written(d, out);
  return out;
}

#else

Instruction decode_x86_64(std::span<const std::byte>) {
  return {};
}

#endif

}  // namespace phlox::unwind
