// Abstract interpretation of machine code. A function's instructions are run on facts instead of numbers,
// along all paths until nothing changes (the fixpoint). The result is, at each instruction, where the return
// address and the caller's rbp and rbx are. For code without call frame information; called by CodeRegion. A
// claim holds only where every path that leads there agrees. x86-64 only. The bytes are hostile: every
// decoded instruction is charged to a budget.
//
//   decoding   decoded_code.h, arch/x86_64_code.h   the effect of an instruction on registers and stack
//   state      stack_state.h                        the facts at one instruction; join() of two paths
//   graph      flow_graph.h                         blocks, and which follow which
//   fixpoint   here                                 states spread along the graph; calls that never return
//   rules      code_state_rules.h                   a state as a rule of an unwind table
//
// It never follows a path into another function, reads no data that code might read, and does not guess.
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
    // For comparison with other sources: CFA less the register, kUnknown: not known.
    int32_t from_sp = 0, from_fp = 0, from_bx = 0;
    bool proven = false;  // leads to a return that finds everything in its place
  };
  static constexpr int32_t kUnknown = INT32_MIN;

  struct Function {
    std::vector<Row> rows;
    std::vector<uint32_t> calls;   // functions it calls
    std::vector<uint32_t> points;  // addresses it computes
    std::vector<uint32_t>
        into;               // jumps that are no calls of another function, although one should start there
    bool returns = false;   // or continues at an unknown place
    bool proven = false;    // its start leads to a return that finds everything in its place
    bool unsure = false;    // code is left out, because it follows a call that may never return
    bool sound = false;     // the assumption about its start holds
    bool evidence = false;  // the evidence: a return, an aligned stack at a call, a mark of the end
    bool finished = false;  // within the budget
  };
  // From the first instruction of a function.
  Function from_start(uint32_t start);
  // The rule of one instruction, from its path until the function returns. kind none: not proven.
  Rule until_return(uint32_t at);

 private:
  // A register that changes somewhere: facts about it hold only at returns.
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
  std::vector<uint32_t> queue_;  // blocks
};

}  // namespace phlox::unwind
