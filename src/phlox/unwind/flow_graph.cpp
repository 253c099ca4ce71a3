#include "phlox/unwind/flow_graph.h"

#include <algorithm>

namespace phlox::unwind {

int32_t FlowGraph::block_at(int64_t offset) const {
  if (!inside(offset)) return -1;
  const Code::Note& n = code_.note(static_cast<uint32_t>(offset));
  return n.led_by == number_ ? n.block : -1;
}

// Whether another function starts there.
bool FlowGraph::is_other(int64_t to) const {
  return to != start_ && around_.starts_function(static_cast<uint32_t>(to)) &&
         into.count(static_cast<uint32_t>(to)) == 0;
}

// Whether the instruction after this one may run next.
bool FlowGraph::goes_on(uint32_t at, const Instruction& i) const {
  const int64_t next = int64_t{at} + i.length, target = int64_t{at} + i.target;
  if (!inside(next) || (next != start_ && around_.starts_function(static_cast<uint32_t>(next)))) return false;
  return !is_call(i) || (cut.count(at) == 0 && (i.kind != Instruction::call || !inside(target) ||
                                                !around_.never_returns(static_cast<uint32_t>(target))));
}

// A block begins there.
void FlowGraph::lead(int64_t to) {
  Code::Note& n = code_.note(static_cast<uint32_t>(to));
  if (n.led_by == number_) return;
  n.led_by = number_;
  todo_.push_back(static_cast<uint32_t>(to));
  leaders_.push_back(static_cast<uint32_t>(to));
}

// Follows every path. False: the budget is spent.
bool FlowGraph::find_leaders() {
  lead(start_);
  while (!todo_.empty()) {
    uint32_t at = todo_.back();
    todo_.pop_back();
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
  std::sort(leaders_.begin(), leaders_.end());
  return true;
}

void FlowGraph::make_block(Block& b, uint32_t first) {
  b.first = first;
  for (uint32_t at = first;;) {
    const Instruction& i = code_.at(at);
    b.last = at;
    b.end = at + i.length;
    if (jumps(i)) b.target = block_at(at + i.target);
    if (ends_way(i)) return;
    b.calls = is_call(i);
    b.call = at;
    if (!goes_on(at, i)) return;
    if (const int32_t next = block_at(b.end); next >= 0) {
      b.next = next;
      return;
    }
    at = b.end;
  }
}

bool FlowGraph::discover(uint32_t start) {
  blocks.clear();
  leaders_.clear();
  todo_.clear();
  start_ = start;
  number_ = code_.next_number();
  if (!find_leaders()) return false;
  for (size_t i = 0; i < leaders_.size(); ++i) code_.note(leaders_[i]).block = static_cast<int32_t>(i);
  blocks.resize(leaders_.size());
  for (size_t i = 0; i < leaders_.size(); ++i) make_block(blocks[i], leaders_[i]);
  return true;
}

}  // namespace phlox::unwind
