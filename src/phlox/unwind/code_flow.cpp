#include "phlox/unwind/code_flow.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

namespace phlox::unwind {
namespace {

// Frames beyond are no frames.
constexpr int64_t kFarthest = int64_t{1} << 30;
// Calls that turn out not to return are taken away, and all is looked at again: so often.
constexpr int kMostRounds = 24;
// Saved by who uses them; the others a call may change.
constexpr uint16_t kCalleeSaved =
    1U << kRbx | 1U << kRsp | 1U << kRbp | 1U << 12 | 1U << 13 | 1U << 14 | 1U << 15;

bool is_address(const Value& v) {
  return v.kind == Value::entry || v.kind == Value::aligned;
}

bool same_base(const Value& a, const Value& b) {
  return a.kind == b.kind && a.reg == b.reg && a.extra == b.extra;
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

Value entry_of(uint8_t reg, int32_t offset = 0) {
  return {Value::entry, reg, 0, offset};
}

bool is_call(const Instruction& i) {
  return (i.kind == Instruction::call && i.target != i.length) || i.kind == Instruction::call_indirect;
}

// To somewhere that it may say itself.
bool jumps(const Instruction& i) {
  return i.kind == Instruction::jump || i.kind == Instruction::branch;
}

// The next instruction is never the one behind it.
bool ends_way(const Instruction& i) {
  return i.kind == Instruction::invalid || i.kind == Instruction::stop || i.kind == Instruction::ret ||
         i.kind == Instruction::jump || i.kind == Instruction::jump_indirect;
}

// Where a function leaves for another in its own place, the stack is as it found it.
bool as_found(const StackState& s) {
  for (const uint8_t reg : {kRsp, kRbx, kRbp, kR12, uint8_t{13}, uint8_t{14}, uint8_t{15}}) {
    if (!(s.registers[reg] == entry_of(reg))) return false;
  }
  return s.read(s.registers[kRsp]) == entry_of(kReturnAddress);
}

}  // namespace

Code::Code(std::span<const std::byte> bytes)
    : bytes_(bytes), notes_(static_cast<Note*>(std::calloc(bytes.size() + 1, sizeof(Note)))) {
  if (notes_ == nullptr) throw std::bad_alloc();
}

const Instruction& Code::at(uint32_t offset) {
  static const Instruction kOutside;
  if (offset >= bytes_.size()) return kOutside;
  Note& n = note(offset);
  if (n.instruction == 0) {
    known_.push_back(decode_x86_64(bytes_.subspan(offset)));
    n.instruction = static_cast<uint32_t>(known_.size());
  }
  return known_[n.instruction - 1];
}

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
  for (size_t i = 0; i < count;) {
    const int64_t into = int64_t{words[i].at.offset} - at.offset;
    if (same_base(words[i].at, at) && into > -8 && into < std::max<int64_t>(size, 1)) {
      words[i] = words[--count];
    } else {
      ++i;
    }
  }
  const bool tells = size == 8 && holds.kind != Value::nothing && holds.kind != Value::constant;
  if (!tells && forgot) return;
  if (count == kMostWords) {
    // Of the words that are left out, nothing is known from now on: then those need not be kept either.
    forgot = true;
    const auto end = std::remove_if(words.begin(), words.begin() + count,
                                    [](const Word& w) { return w.holds.kind == Value::nothing; });
    count = static_cast<uint8_t>(end - words.begin());
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

void StackState::run(const Instruction& i, uint32_t offset) {
  Value& sp = registers[kRsp];
  switch (i.kind) {
    case Instruction::push: {
      const Value pushed = i.reg == kNoRegister ? Value{} : registers[i.reg];
      sp = plus(sp, -8);
      write(sp, 8, pushed);
      break;
    }
    case Instruction::pop: {
      const Value popped = read(sp);
      sp = plus(sp, 8);
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
    case Instruction::align: {
      Value made;
      if (is_address(registers[i.reg])) {
        made = {Value::aligned, static_cast<uint8_t>(offset >> 15), static_cast<int16_t>(offset & 0x7fff), 0};
        // What this place made the last time was another address.
        for (Value& v : registers) {
          if (same_base(v, made)) v = {};
        }
        for (size_t k = 0; k < count;) {
          if (same_base(words[k].at, made) || same_base(words[k].holds, made)) {
            words[k] = words[--count];
            forgot = true;
          } else {
            ++k;
          }
        }
      }
      registers[i.reg] = made;
      break;
    }
    case Instruction::set:
      registers[i.reg] = {Value::constant, 0, 0, i.value};
      break;
    case Instruction::leave:
      sp = registers[kRbp];
      registers[kRbp] = read(sp);
      sp = plus(sp, 8);
      break;
    case Instruction::call:
    case Instruction::call_indirect:
      if (!is_call(i)) {  // of the next instruction, for its address
        sp = plus(sp, -8);
        write(sp, 8, {});
        break;
      }
      for (uint8_t reg = 0; reg < kRegisterCount; ++reg) {
        if ((kCalleeSaved >> reg & 1) == 0) registers[reg] = {};
      }
      for (size_t k = 0; k < count;) {
        if (same_base(words[k].at, sp) && words[k].at.offset < sp.offset) {
          words[k] = words[--count];
        } else {
          ++k;
        }
      }
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

StackState StackState::start(bool of_function) {
  StackState s;
  for (uint8_t reg = 0; reg < kRegisterCount; ++reg) s.registers[reg] = entry_of(reg);
  if (of_function) {
    s.words[s.count++] = {entry_of(kRsp), entry_of(kReturnAddress)};
    s.forgot = true;
  }
  return s;
}

namespace {

// Where a value that a register had at the start of the function is now.
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
    // Popped, and left to whoever comes.
    if (same_base(word.at, sp) && word.at.offset < sp.offset) continue;
    // Of several copies the one that was made for this: next to the return address.
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

// Whether the frame at hand is marked as the outermost one: rbp is 0, the caller's is nowhere any more, and
// there is nothing to return to (psABI 3.4.1: "user code should mark the deepest stack frame by setting the
// frame pointer to zero").
bool is_outermost(const StackState& s) {
  const Value& fp = s.registers[kRbp];
  const SavedRegister saved = saved_register(s, kRbp);
  return fp.kind == Value::constant && fp.offset == 0 && !saved.in_register && saved.word == nullptr;
}

// Inside a function, by what is known there.
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
      // Below the stack pointer it would not last.
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

// At a return, in terms of what the registers were at the start: the rule that held there.
Rule rule_at_return(const StackState& s) {
  Rule rule;
  const Value& sp = s.registers[kRsp];
  const bool direct = sp.kind == Value::entry;
  if (!direct && sp.kind != Value::loaded) return rule;
  if (sp.reg != kRsp && sp.reg != kRbp && (sp.reg != kRbx || !direct)) return rule;
  if (direct) {
    // A word that was written since is no return address that was there before.
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

}  // namespace

int32_t CodeFlow::block_at(int64_t offset) const {
  if (!inside(offset)) return -1;
  const Code::Note& n = code_.note(static_cast<uint32_t>(offset));
  return n.led_by == number_ ? n.block : -1;
}

bool CodeFlow::discover(uint32_t start) {
  blocks_.clear();
  start_ = start;
  number_ = code_.next_number();
  std::vector<uint32_t> todo, leaders;
  const auto is_other = [&](int64_t to) {
    return to != start_ && around_.starts_function(static_cast<uint32_t>(to)) &&
           into_.count(static_cast<uint32_t>(to)) == 0;
  };
  const auto goes_on = [&](uint32_t at, const Instruction& i) {
    const int64_t next = int64_t{at} + i.length, target = int64_t{at} + i.target;
    if (!inside(next) || (next != start_ && around_.starts_function(static_cast<uint32_t>(next))))
      return false;
    return !is_call(i) || (cut_.count(at) == 0 && (i.kind != Instruction::call || !inside(target) ||
                                                   !around_.never_returns(static_cast<uint32_t>(target))));
  };
  const auto lead = [&](int64_t to) {
    Code::Note& n = code_.note(static_cast<uint32_t>(to));
    if (n.led_by == number_) return;
    n.led_by = number_;
    todo.push_back(static_cast<uint32_t>(to));
    leaders.push_back(static_cast<uint32_t>(to));
  };
  lead(start);
  while (!todo.empty()) {
    uint32_t at = todo.back();
    todo.pop_back();
    while (code_.note(at).seen_by != number_) {
      code_.note(at).seen_by = number_;
      if (*around_.budget == 0) return false;
      --*around_.budget;
      const Instruction& i = code_.at(at);
      if (jumps(i) && inside(at + i.target) && !is_other(at + i.target)) lead(at + i.target);
      if (ends_way(i) || !goes_on(at, i)) break;
      if (jumps(i) || is_call(i)) {
        lead(at + i.length);
        break;
      }
      at += i.length;
    }
  }
  std::sort(leaders.begin(), leaders.end());
  for (size_t i = 0; i < leaders.size(); ++i) code_.note(leaders[i]).block = static_cast<int32_t>(i);
  blocks_.resize(leaders.size());
  for (size_t k = 0; k < leaders.size(); ++k) {
    Block& b = blocks_[k];
    b.first = leaders[k];
    for (uint32_t at = b.first;;) {
      const Instruction& i = code_.at(at);
      b.last = at;
      b.end = at + i.length;
      if (jumps(i)) b.target = block_at(at + i.target);
      if (ends_way(i)) break;
      b.calls = is_call(i);
      b.call = at;
      if (!goes_on(at, i)) break;
      if (const int32_t next = block_at(b.end); next >= 0) {
        b.next = next;
        break;
      }
      at = b.end;
    }
  }
  return true;
}

template <class See>
StackState CodeFlow::run(const Block& block, See&& see) {
  StackState state = block.in;
  for (uint32_t at = block.first;;) {
    const Instruction& i = code_.at(at);
    see(at, i, state);
    state.run(i, at);
    if (at == block.last) return state;
    at += i.length;
  }
}

StackState CodeFlow::before_last(const Block& block) {
  StackState before;
  run(block, [&](uint32_t at, const Instruction&, const StackState& s) {
    if (at == block.last) before = s;
  });
  return before;
}

void CodeFlow::spread(int32_t to, const StackState& state) {
  if (to < 0) return;
  Block& b = blocks_[static_cast<size_t>(to)];
  if (!b.reached) {
    b.reached = true;
    b.in = state;
  } else {
    const Value before = b.in.registers[kRsp];
    if (before.kind != Value::nothing && state.registers[kRsp].kind != Value::nothing &&
        !(before == state.registers[kRsp]))
      b.conflict = true;
    if (!b.in.join(state)) return;
  }
  if (b.queued) return;
  b.queued = true;
  queue_.push_back(static_cast<uint32_t>(to));
}

bool CodeFlow::settle(const StackState& start) {
  queue_.clear();
  spread(block_at(start_), start);
  for (size_t done = 0; done < queue_.size(); ++done) {
    const uint32_t number = queue_[done];
    blocks_[number].queued = false;
    uint64_t steps = 0;
    const StackState out =
        run(blocks_[number], [&](uint32_t, const Instruction&, const StackState&) { ++steps; });
    if (*around_.budget < steps) return false;
    *around_.budget -= steps;
    spread(blocks_[number].next, out);
    spread(blocks_[number].target, out);
  }
  return true;
}

CodeFlow::Function CodeFlow::from_start(uint32_t start) {
  Function out;
  cut_.clear();
  into_.clear();
  bool fp_changed = false, bx_changed = false;
  for (int round = 0;; ++round) {
    if (round == kMostRounds || !discover(start) || !settle(StackState::start(true))) return out;
    out.returns = out.evidence = fp_changed = bx_changed = false;
    const size_t jumped_into = into_.size();
    for (Block& b : blocks_) {
      if (!b.reached) continue;
      const StackState before = before_last(b);
      const Instruction& last = code_.at(b.last);
      const auto found = as_found(before);
      switch (last.kind) {
        case Instruction::ret:
          b.good = before.read(before.registers[kRsp]) == entry_of(kReturnAddress);
          b.bad = !b.good;
          if (b.good) {
            const Value &fp = before.registers[kRbp], &bx = before.registers[kRbx];
            fp_changed |= fp.kind != Value::nothing && !(fp == entry_of(kRbp));
            bx_changed |= bx.kind != Value::nothing && !(bx == entry_of(kRbx));
          }
          break;
        case Instruction::jump:
        case Instruction::branch: {
          const int64_t to = int64_t{b.last} + last.target;
          if (b.target < 0) {
            b.good = found;
            out.returns = true;
            // The stack is in use: the place is a part of this function.
            if (!found && inside(to) && before.registers[kRsp].kind != Value::nothing)
              into_.insert(static_cast<uint32_t>(to));
          }
          if (last.kind == Instruction::branch && b.next < 0) b.good |= found, b.bad |= !found;
          break;
        }
        case Instruction::jump_indirect:
          b.good = found;
          out.returns = true;
          break;
        case Instruction::invalid:
          b.bad = true;
          break;
        case Instruction::stop:
          break;
        default:
          if (b.calls) {
            const Value& sp = before.registers[kRsp];
            if (sp.kind == Value::entry && sp.reg == kRsp) {
              // A function is called with its stack aligned to 16 bytes, and finds 8 of them used.
              const bool aligned = ((8 - sp.offset) & 15) == 0;
              out.evidence |= aligned;
              b.bad |= !aligned;
            }
            out.evidence |= rule_of(before).kind == RuleKind::end;
          } else if (b.next < 0) {
            StackState after = before;
            after.run(last, b.last);
            b.good = as_found(after);
            b.bad = !b.good;
          }
          break;
      }
      out.returns |= b.good;
    }
    if (into_.size() != jumped_into) continue;
    std::vector<uint8_t> at_once(blocks_.size());  // bad without another call between
    for (size_t i = 0; i < blocks_.size(); ++i) at_once[i] = blocks_[i].bad ? 1 : 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = blocks_.size(); i-- > 0;) {
        Block& b = blocks_[i];
        for (const int32_t to : {b.next, b.target}) {
          if (to < 0 || !b.reached) continue;
          const auto next = static_cast<size_t>(to);
          if (blocks_[next].good && !b.good) b.good = changed = true;
          if (blocks_[next].bad && !b.bad) b.bad = changed = true;
          if (at_once[next] != 0 && at_once[i] == 0 && !b.calls) at_once[i] = 1, changed = true;
        }
      }
      if (*around_.budget < blocks_.size()) return out;
      *around_.budget -= blocks_.size();
    }
    const size_t cuts = cut_.size();
    for (const Block& b : blocks_) {
      if (b.reached && b.calls && b.next >= 0 && blocks_[static_cast<size_t>(b.next)].conflict)
        cut_.insert(b.call);
    }
    for (size_t i = 0; i < blocks_.size() && cut_.size() == cuts; ++i) {
      const Block& b = blocks_[i];
      if (!b.reached || !b.calls || b.next < 0) continue;
      const auto next = static_cast<size_t>(b.next);
      if (at_once[next] != 0 && !blocks_[next].good) cut_.insert(b.call);
    }
    if (cut_.size() == cuts) break;
  }
  const Block& first = blocks_[static_cast<size_t>(block_at(start))];
  out.finished = true;
  out.sound = first.good || !first.bad;
  out.proven = first.good;
  if (first.good) out.evidence = true;
  // Behind a call that may never return, what does not lead to a return of this function may be another one.
  std::vector<uint8_t> sure(blocks_.size());
  std::vector<int32_t> todo = {block_at(start)};
  while (!todo.empty()) {
    const auto at = static_cast<size_t>(todo.back());
    const Block& b = blocks_[at];
    todo.pop_back();
    if (sure[at] != 0) continue;
    sure[at] = 1;
    if (b.target >= 0) todo.push_back(b.target);
    if (b.next < 0) continue;
    const Instruction& last = code_.at(b.last);
    const bool comes_back = b.calls && last.kind == Instruction::call && inside(b.last + last.target) &&
                            around_.returns(static_cast<uint32_t>(b.last + last.target));
    if (!b.calls || comes_back || blocks_[static_cast<size_t>(b.next)].good) todo.push_back(b.next);
  }
  for (size_t k = 0; k < blocks_.size(); ++k) {
    const Block& b = blocks_[k];
    out.unsure |= b.reached && !b.good && !b.bad && sure[k] == 0;
    if (!b.reached || (!b.good && (b.bad || sure[k] == 0))) continue;
    const int64_t to = int64_t{b.last} + code_.at(b.last).target;
    if (b.good && b.target >= 0 && to != start && into_.count(static_cast<uint32_t>(to)) != 0)
      out.into.push_back(static_cast<uint32_t>(to));
    run(b, [&](uint32_t at, const Instruction& i, const StackState& s) {
      if (i.kind == Instruction::invalid) return;
      if (i.kind == Instruction::call && inside(at + i.target))
        out.calls.push_back(static_cast<uint32_t>(at + i.target));
      if (i.points && inside(at + i.target)) out.points.push_back(static_cast<uint32_t>(at + i.target));
      Row row{at, i.length, rule_of(s), kUnknown, kUnknown, kUnknown, b.good};
      if (fp_changed) row.rule.fp = row.rule.kind == RuleKind::plain ? FpRule::unknown : row.rule.fp;
      if (bx_changed) row.rule.bx = row.rule.kind == RuleKind::plain ? BxRule::unknown : row.rule.bx;
      const auto from = [&](uint8_t reg) {
        const Value& v = s.registers[reg];
        return v.kind == Value::entry && v.reg == kRsp ? 8 - v.offset : kUnknown;
      };
      row.from_sp = from(kRsp);
      row.from_fp = from(kRbp);
      row.from_bx = from(kRbx);
      out.rows.push_back(row);
    });
  }
  return out;
}

Rule CodeFlow::until_return(uint32_t at) {
  cut_.clear();
  into_.clear();
  if (!inside(at) || !discover(at) || !settle(StackState::start(false))) return {};
  Rule rule;
  bool found = false;
  std::vector<Value> calls;
  for (const Block& b : blocks_) {
    if (!b.reached) continue;
    const StackState before = before_last(b);
    const Instruction& last = code_.at(b.last);
    if (b.calls) calls.push_back(before.registers[kRsp]);
    const bool leaves = jumps(last) && b.target < 0 && inside(int64_t{b.last} + last.target);
    if (last.kind != Instruction::ret && !leaves) continue;
    const Rule here = rule_at_return(before);
    if (here.kind == RuleKind::none) return {};
    if (!found) rule = here;
    found = true;
    const bool same =
        here.base == rule.base && here.inner == rule.inner && here.cfa_offset == rule.cfa_offset;
    if (!same) return {};
    if (here.fp != rule.fp || here.fp_offset != rule.fp_offset) rule.fp = FpRule::unknown, rule.fp_offset = 0;
    if (here.bx != rule.bx || here.bx_offset != rule.bx_offset) rule.bx = BxRule::unknown, rule.bx_offset = 0;
  }
  const uint8_t base = rule.base == CfaBase::sp ? kRsp : rule.base == CfaBase::fp ? kRbp : kRbx;
  const bool direct = rule.base == CfaBase::sp || rule.base == CfaBase::fp || rule.base == CfaBase::bx;
  for (const Value& sp : calls) {
    if (direct && sp.kind == Value::entry && sp.reg == base && ((rule.cfa_offset - sp.offset) & 15) != 0)
      return {};
  }
  return found ? rule : Rule{};
}

}  // namespace phlox::unwind
