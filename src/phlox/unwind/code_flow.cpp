#include "phlox/unwind/code_flow.h"

#include "phlox/unwind/code_state_rules.h"

namespace phlox::unwind {
namespace {

// Calls that turn out not to return are removed, and everything is analysed again: at most this often.
constexpr int kMostFlowRounds = 24;

// Known, and different from its value at the start.
bool differs(const Value& v, uint8_t reg) {
  return v.kind != Value::nothing && !(v == entry_of(reg));
}

}  // namespace

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
  Block& b = graph_[to];
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

// Computes the fixpoint: a block whose start state lost something is run again. False: the budget is spent.
bool CodeFlow::settle(uint32_t at, const StackState& start) {
  queue_.clear();
  spread(graph_.block_at(at), start);
  for (size_t done = 0; done < queue_.size(); ++done) {
    Block& block = graph_.blocks[queue_[done]];
    block.queued = false;
    uint64_t steps = 0;
    const StackState out = run(block, [&](uint32_t, const Instruction&, const StackState&) { ++steps; });
    if (*around_.budget < steps) return false;
    *around_.budget -= steps;
    spread(block.next, out);
    spread(block.target, out);
  }
  return true;
}

void CodeFlow::judge_jump(Block& b, const Instruction& last, const StackState& before, Function& out) {
  const bool found = as_found(before);
  const int64_t to = int64_t{b.last} + last.target;
  if (b.target < 0) {
    b.good = found;
    out.returns = true;
    // The stack is in use: the target is part of this function.
    if (!found && graph_.inside(to) && before.registers[kRsp].kind != Value::nothing)
      graph_.into.insert(static_cast<uint32_t>(to));
  }
  if (last.kind == Instruction::branch && b.next < 0) {
    b.good |= found;
    b.bad |= !found;
  }
}

// What the end of a block shows: that the function returns properly, or that this is no function.
void CodeFlow::judge_end(Block& b, Function& out, Changed& changed) {
  const StackState before = before_last(b);
  const Instruction& last = code_.at(b.last);
  switch (last.kind) {
    case Instruction::ret:
      b.good = before.read(before.registers[kRsp]) == entry_of(kReturnAddress);
      b.bad = !b.good;
      if (b.good) {
        changed.fp |= differs(before.registers[kRbp], kRbp);
        changed.bx |= differs(before.registers[kRbx], kRbx);
      }
      break;
    case Instruction::jump:
    case Instruction::branch:
      judge_jump(b, last, before, out);
      break;
    case Instruction::jump_indirect:
      b.good = as_found(before);
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
          // A function is called with its stack aligned to 16 bytes, and 8 of them are used.
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

// What leads to something good is good, and what leads to something bad is bad; `bad_at_once`: without
// another call in between. False: the budget is spent.
bool CodeFlow::lead_back(std::vector<uint8_t>& bad_at_once) {
  std::vector<Block>& blocks = graph_.blocks;
  bad_at_once.assign(blocks.size(), 0);
  for (size_t i = 0; i < blocks.size(); ++i) bad_at_once[i] = blocks[i].bad ? 1 : 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = blocks.size(); i-- > 0;) {
      Block& b = blocks[i];
      for (const int32_t to : {b.next, b.target}) {
        if (to < 0 || !b.reached) continue;
        const auto next = static_cast<size_t>(to);
        if (blocks[next].good && !b.good) b.good = changed = true;
        if (blocks[next].bad && !b.bad) b.bad = changed = true;
        if (bad_at_once[next] != 0 && bad_at_once[i] == 0 && !b.calls) {
          bad_at_once[i] = 1;
          changed = true;
        }
      }
    }
    if (*around_.budget < blocks.size()) return false;
    *around_.budget -= blocks.size();
  }
  return true;
}

// Finds calls that cannot return: the stack after them differs between paths, or the code after them is
// impossible. True: there are more of them than before.
bool CodeFlow::cut_calls(const std::vector<uint8_t>& bad_at_once) {
  const size_t cuts = graph_.cut.size();
  for (const Block& b : graph_.blocks) {
    if (b.reached && b.calls && b.next >= 0 && graph_[b.next].conflict) graph_.cut.insert(b.call);
  }
  // One at a time: without it the others may be sound.
  for (size_t i = 0; i < graph_.blocks.size() && graph_.cut.size() == cuts; ++i) {
    const Block& b = graph_.blocks[i];
    if (!b.reached || !b.calls || b.next < 0) continue;
    if (bad_at_once[static_cast<size_t>(b.next)] != 0 && !graph_[b.next].good) graph_.cut.insert(b.call);
  }
  return graph_.cut.size() != cuts;
}

// Code after a call that may never return, and that does not lead to a return of this function, may belong to
// another one.
std::vector<uint8_t> CodeFlow::sure_from(uint32_t start) {
  std::vector<uint8_t> sure(graph_.blocks.size());
  std::vector<int32_t> todo = {graph_.block_at(start)};
  while (!todo.empty()) {
    const auto at = static_cast<size_t>(todo.back());
    const Block& b = graph_.blocks[at];
    todo.pop_back();
    if (sure[at] != 0) continue;
    sure[at] = 1;
    if (b.target >= 0) todo.push_back(b.target);
    if (b.next < 0) continue;
    const Instruction& last = code_.at(b.last);
    const bool comes_back = b.calls && last.kind == Instruction::call &&
                            graph_.inside(b.last + last.target) &&
                            around_.returns(static_cast<uint32_t>(b.last + last.target));
    if (!b.calls || comes_back || graph_[b.next].good) todo.push_back(b.next);
  }
  return sure;
}

void CodeFlow::take_rows(const Block& b, Changed changed, Function& out) {
  run(b, [&](uint32_t at, const Instruction& i, const StackState& s) {
    if (i.kind == Instruction::invalid) return;
    if (i.kind == Instruction::call && graph_.inside(at + i.target))
      out.calls.push_back(static_cast<uint32_t>(at + i.target));
    if (i.points && graph_.inside(at + i.target)) out.points.push_back(static_cast<uint32_t>(at + i.target));
    Row row{at, i.length, rule_of(s), kUnknown, kUnknown, kUnknown, b.good};
    if (changed.fp) row.rule.fp = row.rule.kind == RuleKind::plain ? FpRule::unknown : row.rule.fp;
    if (changed.bx) row.rule.bx = row.rule.kind == RuleKind::plain ? BxRule::unknown : row.rule.bx;
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

CodeFlow::Function CodeFlow::from_start(uint32_t start) {
  Function out;
  graph_.cut.clear();
  graph_.into.clear();
  Changed changed;
  for (int round = 0;; ++round) {
    if (round == kMostFlowRounds || !graph_.discover(start) || !settle(start, StackState::start(true)))
      return out;
    out.returns = out.evidence = false;
    changed = {};
    const size_t jumped_into = graph_.into.size();
    for (Block& b : graph_.blocks) {
      if (b.reached) judge_end(b, out, changed);
    }
    if (graph_.into.size() != jumped_into) continue;
    std::vector<uint8_t> bad_at_once;
    if (!lead_back(bad_at_once)) return out;
    if (!cut_calls(bad_at_once)) break;
  }
  const Block& first = graph_[graph_.block_at(start)];
  out.finished = true;
  out.sound = first.good || !first.bad;
  out.proven = first.good;
  if (first.good) out.evidence = true;
  const std::vector<uint8_t> sure = sure_from(start);
  for (size_t k = 0; k < graph_.blocks.size(); ++k) {
    const Block& b = graph_.blocks[k];
    out.unsure |= b.reached && !b.good && !b.bad && sure[k] == 0;
    if (!b.reached || (!b.good && (b.bad || sure[k] == 0))) continue;
    const int64_t to = int64_t{b.last} + code_.at(b.last).target;
    if (b.good && b.target >= 0 && to != start && graph_.into.count(static_cast<uint32_t>(to)) != 0)
      out.into.push_back(static_cast<uint32_t>(to));
    take_rows(b, changed, out);
  }
  return out;
}

Rule CodeFlow::until_return(uint32_t at) {
  graph_.cut.clear();
  graph_.into.clear();
  if (!graph_.inside(at) || !graph_.discover(at) || !settle(at, StackState::start(false))) return {};
  Rule rule;
  bool found = false;
  std::vector<Value> calls;
  for (const Block& b : graph_.blocks) {
    if (!b.reached) continue;
    const StackState before = before_last(b);
    const Instruction& last = code_.at(b.last);
    if (b.calls) calls.push_back(before.registers[kRsp]);
    const bool leaves = jumps(last) && b.target < 0 && graph_.inside(int64_t{b.last} + last.target);
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
