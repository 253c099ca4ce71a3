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

bool on_stack(const Value& v) {
  return v.kind == Value::entry && v.reg == kRsp;
}

// Where the return address is now; nullptr: nowhere any more.
const StackState::Word* return_address(const StackState& s) {
  const StackState::Word* ra = nullptr;
  for (size_t i = 0; i < s.count; ++i) {
    if (on_stack(s.words[i].at) && s.words[i].holds == entry_of(kReturnAddress)) ra = &s.words[i];
  }
  const Value& sp = s.registers[kRsp];
  const bool popped = ra != nullptr && on_stack(sp) && ra->at.offset < sp.offset;
  return popped ? nullptr : ra;
}

// CFA = the stack pointer at the start + 8. False: no register and no known word leads there.
bool find_cfa(const StackState& s, Rule& rule) {
  const Value &sp = s.registers[kRsp], &fp = s.registers[kRbp], &bx = s.registers[kRbx];
  const auto by_register = [&rule](CfaBase base, const Value& v) {
    rule.base = base;
    rule.cfa_offset = 8 - v.offset;
    return true;
  };
  if (on_stack(sp)) return by_register(CfaBase::sp, sp);
  if (on_stack(fp)) return by_register(CfaBase::fp, fp);
  if (on_stack(bx)) return by_register(CfaBase::bx, bx);
  for (size_t i = 0; i < s.count; ++i) {
    const auto& word = s.words[i];
    if (!on_stack(word.holds) || word.at.kind != Value::aligned) continue;
    const bool by_sp = same_base(word.at, sp), by_fp = same_base(word.at, fp);
    if (!by_sp && !by_fp) continue;
    rule.base = by_sp ? CfaBase::deref_sp : CfaBase::deref_fp;
    rule.inner = word.at.offset - (by_sp ? sp : fp).offset;
    rule.cfa_offset = 8 - word.holds.offset;
    // Below the stack pointer it could be overwritten.
    if (!by_sp || rule.inner >= 0) return true;
  }
  return false;
}

void set_fp(const StackState& s, Rule& rule) {
  const SavedRegister saved = saved_register(s, kRbp);
  const Value& fp = s.registers[kRbp];
  rule.fp = FpRule::unknown;
  if (saved.in_register) {
    rule.fp = FpRule::same;
  } else if (saved.word != nullptr && on_stack(saved.word->at)) {
    rule.fp = FpRule::at_cfa;
    rule.fp_offset = saved.word->at.offset - 8;
  } else if (saved.word != nullptr && same_base(saved.word->at, fp)) {
    rule.fp = FpRule::at_fp;
    rule.fp_offset = saved.word->at.offset - fp.offset;
  }
}

void set_bx(const StackState& s, Rule& rule) {
  const SavedRegister saved = saved_register(s, kRbx);
  rule.bx = BxRule::unknown;
  if (saved.in_register) {
    rule.bx = BxRule::same;
  } else if (saved.word != nullptr && on_stack(saved.word->at) &&
             fits_short(int64_t{saved.word->at.offset} - 8)) {
    rule.bx = BxRule::at_cfa;
    rule.bx_offset = static_cast<int16_t>(saved.word->at.offset - 8);
  }
}

}  // namespace

Rule rule_of(const StackState& s) {
  Rule rule;
  const StackState::Word* ra = return_address(s);
  if (ra == nullptr || !find_cfa(s, rule)) {
    const bool gone = ra == nullptr || s.registers[kRsp].kind == Value::aligned;
    return gone && is_outermost(s) ? Rule{.kind = RuleKind::end} : Rule{};
  }
  rule.kind = RuleKind::plain;
  rule.ra_offset = ra->at.offset - 8;
  set_fp(s, rule);
  set_bx(s, rule);
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
