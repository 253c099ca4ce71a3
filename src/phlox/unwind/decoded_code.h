// A piece of code whose instructions are decoded once, however many paths cross them, with a note on each
// byte for the code that follows them. Used by FlowGraph and CodeFlow. Only arch/x86_64_code.h knows the
// meaning of an instruction. It never reads beyond its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>

#include "phlox/unwind/arch/x86_64_code.h"

namespace phlox::unwind {

// Offsets count from the first byte of the code. Instructions are decoded once.
class Code {
 public:
  explicit Code(std::span<const std::byte> bytes);
  const Instruction& at(uint32_t offset);

  // Notes on one byte by the user with the number `by`.
  struct Note {
    uint32_t instruction = 0;  // index into known_, plus one
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
  std::unique_ptr<Note, Free> notes_;  // pages that are not written to use no memory
  uint32_t number_ = 0;
};

}  // namespace phlox::unwind
