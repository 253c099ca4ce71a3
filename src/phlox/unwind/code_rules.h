// Rules from the code's instructions: for code without call frame information (musl's C library, kernels
// written in assembly), and for code whose information counts from an unknown frame pointer. A region of a
// module is analysed when a stack first leads there, and the result is kept. x86-64 only: elsewhere it knows
// no rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/elf/elf_file.h"
#include "phlox/unwind/code_flow.h"
#include "phlox/unwind/unwind_table.h"

namespace phlox::unwind {

// A region of code, analysed as a whole.
class CodeRegion {
 public:
  // Offsets from the first byte. `functions` are certain starts; `maybe` are starts only if the code there
  // looks like one.
  CodeRegion(std::span<const std::byte> code, std::span<const uint32_t> functions,
             std::span<const uint32_t> maybe);

  // The rule of the instruction that covers a byte; kind none: not known.
  Rule find(uint32_t offset) const;
  // The rule of an instruction that no path from the start of a function reaches.
  Rule until_return(uint32_t offset) const;
  // The result before it is packed: for tests.
  static std::vector<CodeFlow::Row> rows(std::span<const std::byte> code, std::span<const uint32_t> functions,
                                         std::span<const uint32_t> maybe);

 private:
  std::span<const std::byte> code_;
  std::vector<uint32_t> offsets_;  // sorted
  std::vector<uint16_t> ids_;
  std::vector<Rule> rules_;
  std::vector<uint32_t> starts_, never_return_;  // of functions; sorted
};

class CodeRules {
 public:
  // The bytes of the file, and the table (nullptr: none), must outlive it.
  CodeRules(const elf::ElfFile& file, const UnwindTable* table);

  struct Found {
    Rule rule;
    bool until_return = false;  // known only from the path between there and the return
  };
  // As with a table: for an instruction that runs, or (`exact` false) for the call before a return address.
  Found find(ImageAddress pc, bool exact);
  // For an instruction whose frame is described by an unknown frame pointer: the same frame by the stack
  // pointer, from the distance that the instructions have moved it since the frame pointer was set. kind
  // none: not known.
  Rule by_stack_pointer(ImageAddress pc, bool exact);

  // The starts of functions by the symbols, and possible starts: labels, targets of relocations.
  static void starts(const elf::ElfFile& file, std::vector<ImageAddress>& functions,
                     std::vector<ImageAddress>& maybe);

 private:
  struct Region {
    uint64_t start = 0, end = 0;
    std::unique_ptr<CodeRegion> code;
  };
  const Region* region_of(uint64_t pc);
  Rule follow_stack_pointer(uint64_t pc);

  elf::ElfFile file_;
  const UnwindTable* table_;
  bool asked_ = false;
  std::vector<ImageAddress> functions_, maybe_;  // sorted
  std::vector<Region> regions_;
  uint64_t visited_ = 0;  // bytes in all regions
  // By pc: each costs up to thousands of instructions.
  std::unordered_map<uint64_t, Rule> until_return_, by_stack_pointer_;
};

}  // namespace phlox::unwind
