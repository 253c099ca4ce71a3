// What a function's instructions do to its stack, followed along all of its ways: at each instruction, where
// the return address and the caller's rbp and rbx are. For code without call frame information. A claim holds
// only where every way that leads there says the same. x86-64; works on bytes, which are taken for hostile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "phlox/unwind/arch/x86_64_code.h"
#include "phlox/unwind/rule.h"

namespace phlox::unwind {

// Offsets count from the first byte of the code. Instructions are decoded once.
class Code {
 public:
  explicit Code(std::span<const std::byte> bytes);
  const Instruction& at(uint32_t offset);

  // Notes on one byte, of the one who has the number `by`.
  struct Note {
    uint32_t instruction = 0;  // of known_, less one
    uint32_t seen_by = 0, led_by = 0;
    int32_t block = 0;
  };
  Note& note(uint32_t offset) { return notes_.get()[offset]; }
  uint32_t next_number() { return ++number_; }

 private:
  struct Free {
    void operator()(Note* notes) const { std::free(notes); }
  };
  std::span<const std::byte> bytes_;
  std::deque<Instruction> known_;
  std::unique_ptr<Note, Free> notes_;  // pages that are not written to take no memory
  uint32_t number_ = 0;
};

// What a register or a word of the stack holds, in terms of what was there at the start.
struct Value {
  enum Kind : uint8_t {
    nothing,   // that is known
    entry,     // register `reg` as it was, plus offset
    loaded,    // the word that was at entry(reg) + offset, plus `extra`
    aligned,   // offset from where the stack pointer was aligned; `extra` is the number of that place
    constant,  // offset
  };
  Kind kind = nothing;
  uint8_t reg = 0;
  int16_t extra = 0;
  int32_t offset = 0;
  friend bool operator==(const Value&, const Value&) = default;
};

// The pseudo register of the return address.
inline constexpr uint8_t kReturnAddress = 16;

struct StackState {
  struct Word {
    Value at;
    Value holds;
  };
  static constexpr size_t kMostWords = 32;
  std::array<Value, kRegisterCount> registers;
  std::array<Word, kMostWords> words;  // those written to; of the others, what was there
  uint8_t count = 0;
  bool forgot = false;  // of a word that is not among them nothing is known

  Value read(const Value& at) const;
  void write(const Value& at, unsigned size, const Value& holds);
  // Keeps what both say. False: nothing was lost.
  bool join(const StackState& other);
  void run(const Instruction& instruction, uint32_t offset);
  // As a function finds it; without a return address: as anything finds it, in the middle of one.
  static StackState start(bool of_function);
};

class CodeFlow {
 public:
  // What is known of the code around.
  struct Surroundings {
    uint32_t begin = 0, end = 0;                         // a way that leaves these is not followed
    std::function<bool(uint32_t)> starts_function = {};  // for sure
    std::function<bool(uint32_t)> returns = {};          // the function that starts there
    std::function<bool(uint32_t)> never_returns = {};    // the function that starts there
    uint64_t* budget = nullptr;                          // instructions that may still be looked at
  };

  CodeFlow(Code& code, const Surroundings& around) : code_(code), around_(around) {}

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
  struct Block {
    uint32_t first = 0, last = 0, end = 0;  // instructions; bytes
    int32_t next = -1, target = -1;         // blocks
    uint32_t call = 0;                      // the call that it ends in, if `calls`
    bool calls = false, reached = false, conflict = false, queued = false, good = false, bad = false;
    StackState in;
  };
  bool discover(uint32_t start);
  int32_t block_at(int64_t offset) const;
  bool inside(int64_t offset) const { return offset >= around_.begin && offset < around_.end; }
  bool settle(const StackState& start);
  void spread(int32_t to, const StackState& state);
  template <class See>
  StackState run(const Block& block, See&& see);
  StackState before_last(const Block& block);

  Code& code_;
  const Surroundings& around_;
  uint32_t start_ = 0;
  std::vector<Block> blocks_;
  std::vector<uint32_t> queue_;
  uint32_t number_ = 0;                // of the notes
  std::unordered_set<uint32_t> cut_;   // calls that do not return
  std::unordered_set<uint32_t> into_;  // starts of functions that are jumped to from within
};

}  // namespace phlox::unwind
