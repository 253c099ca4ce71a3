#include "phlox/unwind/stack_state.h"

#include <cstdlib>
#include <limits>

namespace phlox::unwind {
namespace {

// Larger frames are no frames.
constexpr int64_t kFarthest = int64_t{1} << 30;
// Callee-saved registers; a call may change the others.
constexpr uint16_t kCalleeSaved =
    1U << kRbx | 1U << kRsp | 1U << kRbp | 1U << 12 | 1U << 13 | 1U << 14 | 1U << 15;

bool is_address(const Value& v) {
  return v.kind == Value::entry || v.kind == Value::aligned;
}

Value plus(const Value& v, int64_t n) {
  Value out = v;
  if (v.kind == Value::nothing) return out;
  const int64_t sum = (v.kind == Value::loaded ? v.extra : v.offset) + n;
  if (std::abs(sum) > (v.kind == Value::loaded ? std::numeric_limits<int16_t>::max() : kFarthest)) return {};
  if (v.kind == Value::loaded) {
    out.extra = static_cast<int16_t>(sum);
  } else {
    out.offset = static_cast<int32_t>(sum);
  }
  return out;
}

}  // namespace

Value StackState::read(const Value& at) const {
  if (!is_address(at)) return {};
  for (size_t i = 0; i < count; ++i) {
    if (!same_base(words[i].at, at)) continue;
    const int64_t distance = int64_t{words[i].at.offset} - at.offset;
    if (distance == 0) return words[i].holds;
    if (std::abs(distance) < 8) return {};
  }
  if (forgot || at.kind == Value::aligned) return {};
  return {Value::loaded, at.reg, 0, at.offset};
}

void StackState::write(const Value& at, unsigned size, const Value& holds) {
  if (!is_address(at)) return;
  drop([&](const Word& word) {
    const int64_t into = int64_t{word.at.offset} - at.offset;
    return same_base(word.at, at) && into > -8 && into < std::max<int64_t>(size, 1);
  });
  const bool tells = size == 8 && holds.kind != Value::nothing && holds.kind != Value::constant;
  if (!tells && forgot) return;
  if (count == kMostWords) {
    // Dropped words are unknown from now on: then unknown words need not be kept either.
    forgot = true;
    drop([](const Word& word) { return word.holds.kind == Value::nothing; });
    if (!tells || count == kMostWords) return;
  }
  words[count++] = {at, tells ? holds : Value{}};
}

bool StackState::join(const StackState& other) {
  bool changed = false;
  for (size_t i = 0; i < registers.size(); ++i) {
    if (registers[i] == other.registers[i] || registers[i].kind == Value::nothing) continue;
    registers[i] = {};
    changed = true;
  }
  if (other.forgot && !forgot) {
    forgot = true;
    changed = true;
  }
  for (size_t i = 0; i < count;) {
    if (words[i].holds.kind == Value::nothing && !forgot) {
      ++i;
    } else if (words[i].holds == other.read(words[i].at)) {
      ++i;
    } else if (forgot) {
      words[i] = words[--count];
      changed = true;
    } else {
      words[i].holds = {};
      changed = true;
      ++i;
    }
  }
  for (size_t i = 0; i < other.count && !forgot; ++i) {
    const Value mine = read(other.words[i].at);
    if (mine.kind == Value::nothing || mine == other.words[i].holds) continue;
    write(other.words[i].at, 8, {});
    changed = true;
  }
  return changed;
}

void StackState::push(const Value& value) {
  const Value at = plus(registers[kRsp], -8);
  write(at, 8, value);
  registers[kRsp] = at;
}

Value StackState::pop() {
  const Value popped = read(registers[kRsp]);
  registers[kRsp] = plus(registers[kRsp], 8);
  return popped;
}

void StackState::run(const Instruction& i, uint32_t offset) {
  switch (i.kind) {
    case Instruction::push:
      push(i.reg == kNoRegister ? Value{} : registers[i.reg]);
      break;
    case Instruction::pop: {
      const Value popped = pop();
      if (i.reg != kNoRegister) registers[i.reg] = popped;
      break;
    }
    case Instruction::move:
      registers[i.reg] = plus(registers[i.base], i.value);
      break;
    case Instruction::load:
      registers[i.reg] = read(plus(registers[i.base], i.value));
      break;
    case Instruction::store:
      write(plus(registers[i.base], i.value), i.size, i.reg == kNoRegister ? Value{} : registers[i.reg]);
      break;
    case Instruction::add:
      registers[i.reg] = plus(registers[i.reg], i.value);
      break;
    case Instruction::add_register: {
      const Value by = registers[i.base];
      registers[i.reg] =
          by.kind == Value::constant ? plus(registers[i.reg], int64_t{by.offset} * i.value) : Value{};
      break;
    }
    case Instruction::align:
      registers[i.reg] = is_address(registers[i.reg]) ? aligned_at(offset) : Value{};
      break;
    case Instruction::set:
      registers[i.reg] = {Value::constant, 0, 0, i.value};
      break;
    case Instruction::leave:
      registers[kRsp] = registers[kRbp];
      registers[kRbp] = pop();
      break;
    case Instruction::call:
    case Instruction::call_indirect:
      call(is_call(i));
      break;
    case Instruction::other:
    case Instruction::branch:
      if (i.base != kNoRegister) write(plus(registers[i.base], i.value), i.size, {});
      for (uint8_t reg = 0; reg < kRegisterCount; ++reg) {
        if ((i.written >> reg & 1) != 0) registers[reg] = {};
      }
      break;
    case Instruction::invalid:
    case Instruction::jump:
    case Instruction::jump_indirect:
    case Instruction::ret:
    case Instruction::stop:
      break;
  }
}

// Not a call that returns here: of the next instruction, for its address.
void StackState::call(bool returns_here) {
  if (!returns_here) return push({});
  for (uint8_t reg = 0; reg < kRegisterCount; ++reg) {
    if ((kCalleeSaved >> reg & 1) == 0) registers[reg] = {};
  }
  const Value& sp = registers[kRsp];
  drop([&](const Word& word) { return same_base(word.at, sp) && word.at.offset < sp.offset; });
}

// What the instruction there makes of an address. What it produced the last time was another address.
Value StackState::aligned_at(uint32_t offset) {
  const Value made = {Value::aligned, static_cast<uint8_t>(offset >> 15),
                      static_cast<int16_t>(offset & 0x7fff), 0};
  for (Value& v : registers) {
    if (same_base(v, made)) v = {};
  }
  if (drop([&](const Word& word) { return same_base(word.at, made) || same_base(word.holds, made); }))
    forgot = true;
  return made;
}

StackState StackState::start(bool of_function) {
  StackState s;
  for (uint8_t reg = 0; reg < kRegisterCount; ++reg) s.registers[reg] = entry_of(reg);
  if (of_function) {
    s.words[s.count++] = {entry_of(kRsp), entry_of(kReturnAddress)};
    s.forgot = true;
  }
  return s;
}

bool as_found(const StackState& s) {
  for (const uint8_t reg : {kRsp, kRbx, kRbp, kR12, uint8_t{13}, uint8_t{14}, uint8_t{15}}) {
    if (!(s.registers[reg] == entry_of(reg))) return false;
  }
  return s.read(s.registers[kRsp]) == entry_of(kReturnAddress);
}

}  // namespace phlox::unwind
