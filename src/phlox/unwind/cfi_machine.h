// The machine that executes call frame instructions (DWARF 5, section 6.4.2), with the state that a profiler
// needs: how the CFA is computed, and where the frame pointer, the return address and rbx are saved.
// TableBuilder calls it, and takes a function's rows one by one. It reads no entry, opens nothing, and
// evaluates no DWARF expression: it recognises those that compilers and linkers write; any other is unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "phlox/base/byte_reader.h"
#include "phlox/unwind/frame_entries.h"
#include "phlox/unwind/rule.h"

namespace phlox::unwind {

// Where a machine's registers are, in DWARF's numbering.
struct DwarfRegisters {
  uint64_t sp, fp, bx, ra;
  bool ra_in_register;  // the meaning of "not specified" for the return address: still in the link register
};
// By the ELF number; nothing for a machine that is not followed.
std::optional<DwarfRegisters> registers_of(uint16_t machine);

struct Cfa {
  enum Kind : uint8_t { unknown, reg, deref, plt } kind = unknown;
  uint64_t base = 0;  // register
  int64_t offset = 0;
  int64_t inner = 0;
  friend bool operator==(const Cfa&, const Cfa&) = default;
};
struct Saved {
  enum Kind : uint8_t { unsaid, undefined, same, at_cfa, at_fp, unknown } kind = unsaid;
  int64_t offset = 0;
  friend bool operator==(const Saved&, const Saved&) = default;
};
struct CfiState {
  Cfa cfa;
  Saved fp, ra, bx;
};

// The row of the table for a state; kind none: one that we do not follow.
Rule rule_of(const CfiState& state, bool signal, const DwarfRegisters& registers);

class CfiMachine {
 public:
  explicit CfiMachine(const DwarfRegisters& registers) : registers_(registers) {}

  // The state after a CIE's own instructions, with which each of its functions starts.
  CfiState initial(const Cie& cie, const FrameSection& section);

  // A function's rows: next() runs to the end of one, and false means that there are no more. The function,
  // its CIE, the section and the initial state must outlive the walk.
  //
  //   for (machine.begin(fde, section, initial); machine.next();) machine.row_start(), machine.state()
  void begin(const Fde& fde, const FrameSection& section, const CfiState& initial);
  bool next();
  uint64_t row_start() const { return row_start_; }
  const CfiState& state() const { return state_; }

 private:
  // The result of an instruction: the next one, the end of a row, or the end.
  enum class Step : uint8_t { on, row, stop };
  bool run();
  Step execute(uint8_t op);
  Step change_location(uint8_t op);
  Step advance(uint64_t delta);
  Step move_to(uint64_t location);
  void define_cfa(uint8_t op);
  void change_register(uint8_t op);
  void set(uint64_t reg, Saved saved);
  void restore(uint64_t reg);
  int64_t factored();
  int64_t factored_signed();
  Cfa recognise_cfa(std::span<const std::byte> expression) const;
  Saved recognise_address(std::span<const std::byte> expression) const;

  DwarfRegisters registers_;
  const Cie* cie_ = nullptr;
  const FrameSection* section_ = nullptr;
  const CfiState* start_ = nullptr;  // DW_CFA_restore returns to this
  CfiState state_;
  ByteReader in_{{}};
  uint64_t code_address_ = 0;
  uint64_t location_ = 0, row_start_ = 0, end_ = 0;
  bool has_location_ = false;  // a CIE's instructions have none
  bool at_end_ = false, done_ = false;
  std::vector<CfiState> remembered_;
};

}  // namespace phlox::unwind
