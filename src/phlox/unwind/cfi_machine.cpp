#include "phlox/unwind/cfi_machine.h"

#include <elf.h>

#include <limits>

#include "phlox/unwind/arch/aarch64.h"
#include "phlox/unwind/arch/x86_64.h"

namespace phlox::unwind {
namespace {

// DWARF 5, section 6.4 and 7.24; the .eh_frame differences: Linux Standard Base Core 5.0, chapter 10.6.
enum : uint8_t {
  DW_CFA_nop = 0x00,
  DW_CFA_set_loc = 0x01,
  DW_CFA_advance_loc1 = 0x02,
  DW_CFA_advance_loc2 = 0x03,
  DW_CFA_advance_loc4 = 0x04,
  DW_CFA_offset_extended = 0x05,
  DW_CFA_restore_extended = 0x06,
  DW_CFA_undefined = 0x07,
  DW_CFA_same_value = 0x08,
  DW_CFA_register = 0x09,
  DW_CFA_remember_state = 0x0a,
  DW_CFA_restore_state = 0x0b,
  DW_CFA_def_cfa = 0x0c,
  DW_CFA_def_cfa_register = 0x0d,
  DW_CFA_def_cfa_offset = 0x0e,
  DW_CFA_def_cfa_expression = 0x0f,
  DW_CFA_expression = 0x10,
  DW_CFA_offset_extended_sf = 0x11,
  DW_CFA_def_cfa_sf = 0x12,
  DW_CFA_def_cfa_offset_sf = 0x13,
  DW_CFA_val_offset = 0x14,
  DW_CFA_val_offset_sf = 0x15,
  DW_CFA_val_expression = 0x16,
  DW_CFA_AARCH64_negate_ra_state = 0x2d,
  DW_CFA_GNU_args_size = 0x2e,
  DW_CFA_GNU_negative_offset_extended = 0x2f,
  DW_CFA_advance_loc = 0x40,
  DW_CFA_offset = 0x80,
  DW_CFA_restore = 0xc0,
};
enum : uint8_t {
  DW_OP_deref = 0x06,
  DW_OP_and = 0x1a,
  DW_OP_plus = 0x22,
  DW_OP_plus_uconst = 0x23,
  DW_OP_shl = 0x24,
  DW_OP_ge = 0x2a,
  DW_OP_lit0 = 0x30,
  DW_OP_lit3 = 0x33,
  DW_OP_lit15 = 0x3f,
  DW_OP_lit31 = 0x4f,
  DW_OP_breg0 = 0x70,
  DW_OP_breg31 = 0x8f,
};
// gcc nests remember_state two or three deep; anything near this is not a compiler's work.
constexpr size_t kMaxRemembered = 64;

constexpr CfiState kNothing{};

bool fits32(int64_t v) {
  return v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max();
}

// Multiplies like the machine; fits32 catches an absurd product.
int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

}  // namespace

std::optional<DwarfRegisters> registers_of(uint16_t machine) {
  if (machine == EM_X86_64)
    return DwarfRegisters{X86_64::kDwarfSp, X86_64::kDwarfFp, X86_64::kDwarfBx, X86_64::kDwarfRa, false};
  if (machine == EM_AARCH64)
    return DwarfRegisters{Aarch64::kDwarfSp, Aarch64::kDwarfFp, Aarch64::kDwarfBx, Aarch64::kDwarfRa, true};
  return std::nullopt;
}

CfiState CfiMachine::initial(const Cie& cie, const FrameSection& section) {
  cie_ = &cie;
  section_ = &section;
  start_ = &kNothing;
  state_ = kNothing;
  in_ = ByteReader(cie.code.bytes);
  code_address_ = cie.code.address;
  remembered_.clear();
  has_location_ = false;
  run();
  return state_;
}

void CfiMachine::begin(const Fde& fde, const FrameSection& section, const CfiState& initial) {
  cie_ = fde.cie;
  section_ = &section;
  start_ = &initial;
  state_ = initial;
  in_ = ByteReader(fde.code.bytes);
  code_address_ = fde.code.address;
  remembered_.clear();
  location_ = row_start_ = fde.start;
  end_ = fde.end;
  has_location_ = true;
  at_end_ = done_ = false;
}

bool CfiMachine::next() {
  if (done_) return false;
  if (!at_end_ && run()) return true;
  done_ = true;
  row_start_ = location_;
  return true;
}

// A row ends where the location advances. If it leaves the function, its instructions end too.
CfiMachine::Step CfiMachine::move_to(uint64_t location) {
  row_start_ = location_;
  if (location >= end_) {
    at_end_ = true;
  } else {
    location_ = location;
  }
  return Step::row;
}

CfiMachine::Step CfiMachine::advance(uint64_t delta) {
  if (!has_location_) return Step::stop;
  uint64_t step = 0, to = 0;
  if (__builtin_mul_overflow(delta, cie_->code_align, &step) || __builtin_add_overflow(location_, step, &to))
    return Step::stop;
  return step == 0 ? Step::on : move_to(to);
}

CfiMachine::Step CfiMachine::change_location(uint8_t op) {
  switch (op) {
    case DW_CFA_advance_loc1:
      return advance(in_.read<uint8_t>());
    case DW_CFA_advance_loc2:
      return advance(in_.read<uint16_t>());
    case DW_CFA_advance_loc4:
      return advance(in_.read<uint32_t>());
    default: {
      const auto to = read_pointer(in_, cie_->encoding, code_address_, *section_);
      if (!to || !has_location_ || *to < location_) return Step::stop;
      return *to > location_ ? move_to(*to) : Step::on;
    }
  }
}

int64_t CfiMachine::factored() {
  return times(static_cast<int64_t>(in_.uleb128()), cie_->data_align);
}

int64_t CfiMachine::factored_signed() {
  return times(in_.sleb128(), cie_->data_align);
}

void CfiMachine::define_cfa(uint8_t op) {
  switch (op) {
    case DW_CFA_def_cfa: {
      const uint64_t reg = in_.uleb128();
      state_.cfa = {Cfa::reg, reg, static_cast<int64_t>(in_.uleb128()), 0};
      break;
    }
    case DW_CFA_def_cfa_sf: {
      const uint64_t reg = in_.uleb128();
      state_.cfa = {Cfa::reg, reg, factored_signed(), 0};
      break;
    }
    case DW_CFA_def_cfa_register: {
      const uint64_t reg = in_.uleb128();
      if (state_.cfa.kind != Cfa::reg) state_.cfa = {};
      state_.cfa.base = reg;
      break;
    }
    case DW_CFA_def_cfa_offset:
      state_.cfa.offset = static_cast<int64_t>(in_.uleb128());
      break;
    case DW_CFA_def_cfa_offset_sf:
      state_.cfa.offset = factored_signed();
      break;
    default:  // DW_CFA_def_cfa_expression
      state_.cfa = recognise_cfa(in_.bytes(in_.uleb128()));
      break;
  }
}

void CfiMachine::set(uint64_t reg, Saved saved) {
  if (reg == registers_.fp) state_.fp = saved;
  if (reg == registers_.ra) state_.ra = saved;
  if (reg == registers_.bx) state_.bx = saved;
}

void CfiMachine::restore(uint64_t reg) {
  if (reg == registers_.fp) state_.fp = start_->fp;
  if (reg == registers_.ra) state_.ra = start_->ra;
  if (reg == registers_.bx) state_.bx = start_->bx;
}

// Each of these begins with a register.
void CfiMachine::change_register(uint8_t op) {
  const uint64_t reg = in_.uleb128();
  switch (op) {
    case DW_CFA_offset_extended:
      return set(reg, {Saved::at_cfa, factored()});
    case DW_CFA_offset_extended_sf:
      return set(reg, {Saved::at_cfa, factored_signed()});
    case DW_CFA_GNU_negative_offset_extended:
      return set(reg, {Saved::at_cfa, times(factored(), -1)});
    case DW_CFA_restore_extended:
      return restore(reg);
    case DW_CFA_undefined:
      return set(reg, {Saved::undefined, 0});
    case DW_CFA_same_value:
      return set(reg, {Saved::same, 0});
    case DW_CFA_register:
      return set(reg, {in_.uleb128() == reg ? Saved::same : Saved::unknown, 0});
    case DW_CFA_expression:
      return set(reg, recognise_address(in_.bytes(in_.uleb128())));
    case DW_CFA_val_expression:
      in_.bytes(in_.uleb128());
      return set(reg, {Saved::unknown, 0});
    default:  // DW_CFA_val_offset, DW_CFA_val_offset_sf
      in_.uleb128();
      return set(reg, {Saved::unknown, 0});
  }
}

CfiMachine::Step CfiMachine::execute(uint8_t op) {
  switch (op) {
    case DW_CFA_nop:
    // Whether the return address carries an authentication code: it is always masked off.
    case DW_CFA_AARCH64_negate_ra_state:
      return Step::on;
    case DW_CFA_set_loc:
    case DW_CFA_advance_loc1:
    case DW_CFA_advance_loc2:
    case DW_CFA_advance_loc4:
      return change_location(op);
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_sf:
    case DW_CFA_def_cfa_register:
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_offset_sf:
    case DW_CFA_def_cfa_expression:
      define_cfa(op);
      return Step::on;
    case DW_CFA_offset_extended:
    case DW_CFA_offset_extended_sf:
    case DW_CFA_GNU_negative_offset_extended:
    case DW_CFA_restore_extended:
    case DW_CFA_undefined:
    case DW_CFA_same_value:
    case DW_CFA_register:
    case DW_CFA_expression:
    case DW_CFA_val_expression:
    case DW_CFA_val_offset:
    case DW_CFA_val_offset_sf:
      change_register(op);
      return Step::on;
    case DW_CFA_remember_state:
      if (remembered_.size() == kMaxRemembered) return Step::stop;
      remembered_.push_back(state_);
      return Step::on;
    case DW_CFA_restore_state:
      if (remembered_.empty()) return Step::stop;
      state_ = remembered_.back();
      remembered_.pop_back();
      return Step::on;
    case DW_CFA_GNU_args_size:
      in_.uleb128();
      return Step::on;
    default:
      return Step::stop;  // unknown, and so is its length
  }
}

// Runs until the location advances (true), or nothing is left.
bool CfiMachine::run() {
  while (!in_.at_end() && !in_.failed()) {
    const auto op = in_.read<uint8_t>();
    Step step = Step::on;
    // Three have their operand in the same byte, and are the most frequent.
    switch (op & 0xc0) {
      case DW_CFA_advance_loc:
        step = advance(op & 0x3f);
        break;
      case DW_CFA_offset:
        set(op & 0x3f, {Saved::at_cfa, factored()});
        break;
      case DW_CFA_restore:
        restore(op & 0x3f);
        break;
      default:
        // The padding of an entry, and what follows each push.
        if (op == DW_CFA_nop) continue;
        if (op == DW_CFA_def_cfa_offset) {
          state_.cfa.offset = static_cast<int64_t>(in_.uleb128());
          continue;
        }
        step = execute(op);
        break;
    }
    if (step != Step::on) return step == Step::row;
  }
  return false;
}

// *(base + inner) + offset, or base + offset, or the linkers' expression for the lazy PLT.
Cfa CfiMachine::recognise_cfa(std::span<const std::byte> expression) const {
  ByteReader in(expression);
  const auto first = in.read<uint8_t>();
  if (first < DW_OP_breg0 || first > DW_OP_breg31) return {};
  const uint64_t base = first - DW_OP_breg0;
  const int64_t displacement = in.sleb128();
  if (in.failed()) return {};
  if (in.at_end()) return {Cfa::reg, base, displacement, 0};
  const auto second = in.read<uint8_t>();
  if (second == DW_OP_deref) {
    Cfa cfa{Cfa::deref, base, 0, displacement};
    if (in.at_end()) return cfa;
    const auto third = in.read<uint8_t>();
    if (third == DW_OP_plus_uconst) {
      cfa.offset = static_cast<int64_t>(in.uleb128());
    } else if (third >= DW_OP_lit0 && third <= DW_OP_lit31 && in.read<uint8_t>() == DW_OP_plus) {
      cfa.offset = third - DW_OP_lit0;
    } else {
      return {};
    }
    return in.at_end() && !in.failed() ? cfa : Cfa{};
  }
  // x86-64 only: sp + 8 + ((pc & 15) >= N) * 8, in bfd/elfxx-x86.h and lld alike.
  if (base != X86_64::kDwarfSp || registers_.ra != X86_64::kDwarfRa ||
      second != DW_OP_breg0 + X86_64::kDwarfRa)
    return {};
  if (in.sleb128() != 0 || in.read<uint8_t>() != DW_OP_lit15 || in.read<uint8_t>() != DW_OP_and) return {};
  const auto limit = in.read<uint8_t>();
  if (limit < DW_OP_lit0 || limit > DW_OP_lit15) return {};
  if (in.read<uint8_t>() != DW_OP_ge || in.read<uint8_t>() != DW_OP_lit3 || in.read<uint8_t>() != DW_OP_shl ||
      in.read<uint8_t>() != DW_OP_plus || in.failed() || !in.at_end()) {
    return {};
  }
  return {Cfa::plt, base, displacement, limit - DW_OP_lit0};
}

// Where a register is saved: only fp + offset is followed (functions that realign their stack).
Saved CfiMachine::recognise_address(std::span<const std::byte> expression) const {
  ByteReader in(expression);
  if (in.read<uint8_t>() != DW_OP_breg0 + registers_.fp) return {Saved::unknown, 0};
  const int64_t offset = in.sleb128();
  if (in.failed() || !in.at_end()) return {Saved::unknown, 0};
  return {Saved::at_fp, offset};
}

Rule rule_of(const CfiState& s, bool signal, const DwarfRegisters& registers) {
  Rule rule;
  if (signal) {
    rule.kind = RuleKind::signal;
    return rule;
  }
  if (s.ra.kind == Saved::undefined) {
    rule.kind = RuleKind::end;
    return rule;
  }
  rule.kind = RuleKind::plain;
  const bool on_sp = s.cfa.base == registers.sp;
  const bool on_bx = s.cfa.base == registers.bx && s.cfa.kind == Cfa::reg;
  if (s.cfa.kind == Cfa::unknown || (!on_sp && !on_bx && s.cfa.base != registers.fp)) return {};
  if (!fits32(s.cfa.offset) || !fits32(s.cfa.inner) || !fits32(s.fp.offset) || !fits32(s.ra.offset))
    return {};
  if (s.cfa.kind == Cfa::reg) rule.base = on_sp ? CfaBase::sp : on_bx ? CfaBase::bx : CfaBase::fp;
  if (s.cfa.kind == Cfa::deref) rule.base = on_sp ? CfaBase::deref_sp : CfaBase::deref_fp;
  if (s.cfa.kind == Cfa::plt) rule.base = CfaBase::plt;
  rule.cfa_offset = static_cast<int32_t>(s.cfa.offset);
  rule.inner = static_cast<int32_t>(s.cfa.kind == Cfa::reg ? 0 : s.cfa.inner);
  switch (s.fp.kind) {
    case Saved::unsaid:
    case Saved::same:
      rule.fp = FpRule::same;
      break;
    case Saved::at_cfa:
      rule.fp = FpRule::at_cfa;
      rule.fp_offset = static_cast<int32_t>(s.fp.offset);
      break;
    case Saved::at_fp:
      rule.fp = FpRule::at_fp;
      rule.fp_offset = static_cast<int32_t>(s.fp.offset);
      break;
    case Saved::undefined:
    case Saved::unknown:
      rule.fp = FpRule::unknown;
      break;
  }
  if (s.bx.kind == Saved::at_cfa && s.bx.offset == static_cast<int16_t>(s.bx.offset)) {
    rule.bx = BxRule::at_cfa;
    rule.bx_offset = static_cast<int16_t>(s.bx.offset);
  } else if (s.bx.kind != Saved::unsaid && s.bx.kind != Saved::same) {
    rule.bx = BxRule::unknown;
  }
  switch (s.ra.kind) {
    case Saved::at_cfa:
      rule.ra = RaRule::at_cfa;
      rule.ra_offset = static_cast<int32_t>(s.ra.offset);
      break;
    case Saved::unsaid:
    case Saved::same:
      if (!registers.ra_in_register) return {};
      rule.ra = RaRule::link_register;
      break;
    default:
      return {};
  }
  return rule;
}

}  // namespace phlox::unwind
