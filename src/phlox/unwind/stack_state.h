// The abstract state of the interpretation (code_flow.h): the contents of registers and of words of the stack
// at one instruction, in terms of their contents at the start. run() applies an instruction; join() keeps
// what two paths agree on. A state only ever loses facts, so following the paths ends. Used by CodeFlow and
// code_state_rules.h; knows no functions, blocks or tables.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "phlox/unwind/arch/x86_64_code.h"

namespace phlox::unwind {

// The content of a register or a word of the stack, in terms of the contents at the start.
struct Value {
  enum Kind : uint8_t {
    nothing,  // not known
    entry,    // register `reg` as it was, plus offset
    loaded,   // the word that was at entry(reg) + offset, plus `extra`
    // Offset from the place where the stack pointer was aligned; `extra` is the number of that place.
    aligned,
    constant,  // offset
  };
  Kind kind = nothing;
  uint8_t reg = 0;
  int16_t extra = 0;
  int32_t offset = 0;
  friend bool operator==(const Value&, const Value&) = default;
};

inline Value entry_of(uint8_t reg, int32_t offset = 0) {
  return {Value::entry, reg, 0, offset};
}

// Whether their distance is known.
inline bool same_base(const Value& a, const Value& b) {
  return a.kind == b.kind && a.reg == b.reg && a.extra == b.extra;
}

// The pseudo register of the return address.
inline constexpr uint8_t kReturnAddress = 16;

struct StackState {
  struct Word {
    Value at;
    Value holds;
  };
  static constexpr size_t kMostWords = 32;
  std::array<Value, kRegisterCount> registers;
  std::array<Word, kMostWords> words;  // the words written to; the others are unchanged
  uint8_t count = 0;
  bool forgot = false;  // nothing is known about a word that is not among them

  Value read(const Value& at) const;
  void write(const Value& at, unsigned size, const Value& holds);
  // Keeps the facts that both have. False: nothing was lost.
  bool join(const StackState& other);
  void run(const Instruction& instruction, uint32_t offset);
  // The state at a function's start; without a return address: a general state in the middle of one.
  static StackState start(bool of_function);

 private:
  void push(const Value& value);
  Value pop();
  void call(bool returns_here);
  // Drops the words for which `which` is true. Returns whether there were any.
  template <class Which>
  bool drop(Which which) {
    const auto end = std::remove_if(words.begin(), words.begin() + count, which);
    const auto left = static_cast<uint8_t>(end - words.begin());
    return std::exchange(count, left) != left;
  }
  Value aligned_at(uint32_t offset);
};

// At a jump from a function to another one in its place, the stack is as on entry.
bool as_found(const StackState& s);

}  // namespace phlox::unwind
