// The abstract state of the interpretation (code_flow.h): what the registers and the words of the stack hold
// at one instruction, in terms of what they held at the start. run() is what an instruction makes of it,
// join() what two ways that meet agree on: a state only ever loses, so that following them ends. Used by
// CodeFlow and code_state_rules.h; knows nothing of functions, of blocks or of tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "phlox/unwind/arch/x86_64_code.h"

namespace phlox::unwind {

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

inline Value entry_of(uint8_t reg, int32_t offset = 0) {
  return {Value::entry, reg, 0, offset};
}

// Whether the two are a distance from each other that is known.
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

// Where a function leaves for another in its own place, the stack is as it found it.
bool as_found(const StackState& s);

}  // namespace phlox::unwind
