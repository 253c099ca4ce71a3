#include "phlox/unwind/code_state_rules.h"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace phlox::unwind {
namespace {

// Where a register's value at the start of the function is now.
struct SavedRegister {
  bool in_register = false;
  const StackState::Word* word = nullptr;
};

SavedRegister saved_register(const StackState& s, uint8_t reg) {
  SavedRegister out;
  out.in_register = s.registers[reg] == entry_of(reg);
  const Value& sp = s.registers[kRsp];
  for (size_t i = 0; i < s.count; ++i) {
    const auto& word = s.words[i];
    if (!(word.holds == entry_of(reg))) continue;
    // Popped, so it may be overwritten.
    if (same_base(word.at, sp) && word.at.offset < sp.offset) continue;
    // Of several copies, the one made for this purpose: next to the return address.
    const bool outer = out.word == nullptr || word.at.kind != out.word->at.kind
                           ? out.word == nullptr || word.at.kind == Value::entry
                           : word.at.offset > out.word->at.offset;
    if (outer) out.word = &word;
  }
  return out;
}

bool fits_short(int64_t n) {
  return n >= std::numeric_limits<int16_t>::min() && n <= std::numeric_limits<int16_t>::max();
}

// Whether this frame is marked as the outermost one: rbp is 0, the caller's is lost, and there is nothing to
// return to (psABI 3.4.1: "user code should mark the deepest stack frame by setting the frame pointer to
// zero").
bool is_outermost(const StackState& s) {
  const Value& fp = s.registers[kRbp];
  const SavedRegister saved = saved_register(s, kRbp);
  return fp.kind == Value::constant && fp.offset == 0 && !saved.in_register && saved.word == nullptr;
}

}  // namespace

Rule rule_of(const StackState& s) {
  Rule rule;
  const Value &sp = s.registers[kRsp], &fp = s.registers[kRbp], &bx = s.registers[kRbx];
  const StackState::Word* ra = nullptr;
  for (size_t i = 0; i < s.count; ++i) {
    if (s.words[i].at.kind == Value::entry && s.words[i].at.reg == kRsp &&
        s.words[i].holds == entry_of(kReturnAddress))
      ra = &s.words[i];
  }
  const auto on_stack = [](const Value& v) { return v.kind == Value::entry && v.reg == kRsp; };
  const bool popped = ra == nullptr || (on_stack(sp) && ra->at.offset < sp.offset);
  // CFA = the stack pointer at the start + 8
  bool found = !popped;
  if (popped) {
  } else if (on_stack(sp)) {
    rule.base = CfaBase::sp;
    rule.cfa_offset = 8 - sp.offset;
  } else if (on_stack(fp)) {
    rule.base = CfaBase::fp;
    rule.cfa_offset = 8 - fp.offset;
  } else if (on_stack(bx)) {
    rule.base = CfaBase::bx;
    rule.cfa_offset = 8 - bx.offset;
  } else {
    found = false;
    for (size_t i = 0; i < s.count && !found; ++i) {
      const auto& word = s.words[i];
      if (!on_stack(word.holds) || word.at.kind != Value::aligned) continue;
      const bool by_sp = same_base(word.at, sp), by_fp = same_base(word.at, fp);
      if (!by_sp && !by_fp) continue;
      rule.base = by_sp ? CfaBase::deref_sp : CfaBase::deref_fp;
      rule.inner = word.at.offset - (by_sp ? sp : fp).offset;
      rule.cfa_offset = 8 - word.holds.offset;
      // Below the stack pointer it could be overwritten.
      found = !by_sp || rule.inner >= 0;
    }
  }
  if (!found) {
    const bool gone = popped || sp.kind == Value::aligned;
    if (gone && is_outermost(s)) rule.kind = RuleKind::end;
    return rule.kind == RuleKind::end ? Rule{.kind = RuleKind::end} : Rule{};
  }
  rule.kind = RuleKind::plain;
  rule.ra_offset = ra->at.offset - 8;
  const SavedRegister saved_fp = saved_register(s, kRbp), saved_bx = saved_register(s, kRbx);
  rule.fp = FpRule::unknown;
  if (saved_fp.in_register) {
    rule.fp = FpRule::same;
  } else if (saved_fp.word != nullptr && on_stack(saved_fp.word->at)) {
    rule.fp = FpRule::at_cfa;
    rule.fp_offset = saved_fp.word->at.offset - 8;
  } else if (saved_fp.word != nullptr && same_base(saved_fp.word->at, fp)) {
    rule.fp = FpRule::at_fp;
    rule.fp_offset = saved_fp.word->at.offset - fp.offset;
  }
  rule.bx = BxRule::unknown;
  if (saved_bx.in_register) {
    rule.bx = BxRule::same;
  } else if (saved_bx.word != nullptr && on_stack(saved_bx.word->at) &&
             fits_short(int64_t{saved_bx.word->at.offset} - 8)) {
    rule.bx = BxRule::at_cfa;
    rule.bx_offset = static_cast<int16_t>(saved_bx.word->at.offset - 8);
  }
  return rule;
}

Rule rule_at_return(const StackState& s) {
  Rule rule;
  const Value& sp = s.registers[kRsp];
  const bool direct = sp.kind == Value::entry;
  if (!direct && sp.kind != Value::loaded) return rule;
  if (sp.reg != kRsp && sp.reg != kRbp && (sp.reg != kRbx || !direct)) return rule;
  if (direct) {
    // A word that was written since is not the return address that was there before.
    if (!(s.read(sp) == Value{Value::loaded, sp.reg, 0, sp.offset})) return rule;
    rule.base = sp.reg == kRsp ? CfaBase::sp : sp.reg == kRbp ? CfaBase::fp : CfaBase::bx;
    rule.cfa_offset = sp.offset + 8;
  } else {
    rule.base = sp.reg == kRsp ? CfaBase::deref_sp : CfaBase::deref_fp;
    rule.inner = sp.offset;
    rule.cfa_offset = sp.extra + 8;
  }
  rule.kind = RuleKind::plain;
  rule.ra_offset = -8;
  const Value &fp = s.registers[kRbp], &bx = s.registers[kRbx];
  rule.fp = FpRule::unknown;
  if (fp == entry_of(kRbp)) {
    rule.fp = FpRule::same;
  } else if (fp.kind == Value::loaded && fp.extra == 0) {
    if (direct && fp.reg == sp.reg) {
      rule.fp = FpRule::at_cfa;
      rule.fp_offset = fp.offset - rule.cfa_offset;
    } else if (fp.reg == kRbp) {
      rule.fp = FpRule::at_fp;
      rule.fp_offset = fp.offset;
    }
  }
  rule.bx = BxRule::unknown;
  if (bx == entry_of(kRbx)) {
    rule.bx = BxRule::same;
  } else if (bx.kind == Value::loaded && bx.extra == 0 && direct && bx.reg == sp.reg &&
             fits_short(int64_t{bx.offset} - rule.cfa_offset)) {
    rule.bx = BxRule::at_cfa;
    rule.bx_offset = static_cast<int16_t>(bx.offset - rule.cfa_offset);
  }
  return rule;
}

}  // namespace phlox::unwind
