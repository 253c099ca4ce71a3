// The blocks of a function: straight pieces of its instructions, and which of them follow which. CodeFlow
// rebuilds it when it learns that a call does not return or that a jump stays within the function. It follows
// only the targets of instructions, not their effect on the stack.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

#include "phlox/unwind/decoded_code.h"
#include "phlox/unwind/stack_state.h"

namespace phlox::unwind {

// Facts about the code around a function.
struct Surroundings {
  uint32_t begin = 0, end = 0;                         // a path that leaves these is not followed
  std::function<bool(uint32_t)> starts_function = {};  // certain starts
  std::function<bool(uint32_t)> returns = {};          // the function that starts there
  std::function<bool(uint32_t)> never_returns = {};    // the function that starts there
  uint64_t* budget = nullptr;                          // the number of instructions that may still be decoded
};

struct Block {
  uint32_t first = 0, last = 0, end = 0;  // instructions; bytes
  int32_t next = -1, target = -1;         // blocks
  uint32_t call = 0;                      // the call at its end, if `calls`
  bool calls = false;
  // Results of CodeFlow: paths lead here; they differ in where the stack is; it waits to be analysed; it
  // leads to a return that finds everything in its place, or to something impossible.
  bool reached = false, conflict = false, queued = false, good = false, bad = false;
  StackState in;
};

class FlowGraph {
 public:
  // Both must outlive it.
  FlowGraph(Code& code, const Surroundings& around) : code_(code), around_(around) {}

  // The blocks that paths from an instruction reach, by their start. False: the budget is spent.
  bool discover(uint32_t start);
  // -1: none starts there.
  int32_t block_at(int64_t offset) const;
  bool inside(int64_t offset) const { return offset >= around_.begin && offset < around_.end; }
  Block& operator[](int32_t block) { return blocks[static_cast<size_t>(block)]; }

  std::vector<Block> blocks;
  // Rules for the next discover().
  std::unordered_set<uint32_t> cut;   // calls that do not return
  std::unordered_set<uint32_t> into;  // starts of functions that jumps from within lead to

 private:
  bool is_other(int64_t to) const;
  bool goes_on(uint32_t at, const Instruction& i) const;
  void lead(int64_t to);
  bool find_leaders();
  void make_block(Block& b, uint32_t first);

  Code& code_;
  const Surroundings& around_;
  std::vector<uint32_t> leaders_, todo_;  // first instructions of blocks; of those, not followed yet
  uint32_t start_ = 0;
  uint32_t number_ = 0;  // of the notes
};

}  // namespace phlox::unwind
