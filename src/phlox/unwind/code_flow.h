// Abstract interpretation of machine code: a function's instructions are run on what is known instead of on
// numbers, along all of its ways until nothing changes any more (the fixpoint), and out comes, at each
// instruction, where the return address and the caller's rbp and rbx are. For code without call frame
// information; called by CodeRegion. A claim holds only where every way that leads there says the same.
// x86-64; works on bytes, which are taken for hostile: every instruction that is looked at is paid for out of
// a budget.
//
//   decoding   decoded_code.h, arch/x86_64_code.h   what an instruction does to registers and stack, as far
//   as it matters state      stack_state.h                        what is known at one instruction; join() of
//   two ways graph      flow_graph.h                         blocks, and which follows which fixpoint   here
//   states spread along the graph; which calls never return rules      code_state_rules.h                   a
//   state in the words of an unwind table
//
// It never follows a way into another function, reads no data that code might read, and does not guess.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phlox/unwind/decoded_code.h"
#include "phlox/unwind/flow_graph.h"
#include "phlox/unwind/rule.h"
#include "phlox/unwind/stack_state.h"

namespace phlox::unwind {

class CodeFlow {
 public:
  // Both must outlive it.
  CodeFlow(Code& code, const Surroundings& around) : code_(code), around_(around), graph_(code, around) {}

  struct Row {
    uint32_t offset = 0;
    uint8_t length = 0;
    Rule rule;
    // For a comparison with what others say: CFA less the register, kUnknown: not known.
    int32_t from_sp = 0, from_fp = 0, from_bx = 0;
    bool proven = false;  // leads to a return that finds everything at its place
  };
  static constexpr int32_t kUnknown = INT32_MIN;

  struct Function {
    std::vector<Row> rows;
    std::vector<uint32_t> calls;   // functions it calls
    std::vector<uint32_t> points;  // addresses it makes
    std::vector<uint32_t>
        into;               // jumps that are no calls of another function, though one is said to start there
    bool returns = false;   // or goes on where it is not known
    bool proven = false;    // its start leads to a return that finds everything at its place
    bool unsure = false;    // something is left out: it lies behind a call that may never return
    bool sound = false;     // what was assumed of its start holds
    bool evidence = false;  // something shows it: a return, an aligned stack at a call, a mark of the end
    bool finished = false;  // within the budget
  };
  // From the first instruction of a function on.
  Function from_start(uint32_t start);
  // Of one instruction, by what happens from there until the function returns. kind none: not proven.
  Rule until_return(uint32_t at);

 private:
  // A register that is not everywhere as it was: what is said of it holds at returns alone.
  struct Changed {
    bool fp = false, bx = false;
  };
  bool settle(uint32_t at, const StackState& start);
  void spread(int32_t to, const StackState& state);
  template <class See>
  StackState run(const Block& block, See&& see);
  StackState before_last(const Block& block);

  void judge_end(Block& block, Function& out, Changed& changed);
  void judge_jump(Block& block, const Instruction& last, const StackState& before, Function& out);
  bool lead_back(std::vector<uint8_t>& bad_at_once);
  bool cut_calls(const std::vector<uint8_t>& bad_at_once);
  std::vector<uint8_t> sure_from(uint32_t start);
  void take_rows(const Block& block, Changed changed, Function& out);

  Code& code_;
  const Surroundings& around_;
  FlowGraph graph_;
  std::vector<uint32_t> queue_;  // of blocks
};

}  // namespace phlox::unwind
