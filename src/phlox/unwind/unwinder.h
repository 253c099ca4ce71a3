// Turns registers and stack bytes into native frames. Knows no process: it asks for the few words that are
// not in the bytes. Use one Unwinder for each process: it caches the rules of its addresses.
//
//   ModuleMap map;  map.add(start, end, bias, module);  map.settle();
//   Unwinder unwinder(map, machine, [](uint32_t module) { return table_of(module); });
//   NativeStack stack;
//   unwinder.unwind({registers, stack_start, stack_bytes, read_more, restarts}, stack);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/unwind/code_rules.h"
#include "phlox/unwind/module_map.h"
#include "phlox/unwind/unwind_table.h"

namespace phlox::unwind {

// Bytes below the stack pointer that code may still use: the red zone of the x86-64 psABI, and where gcc's
// epilogues leave "fp at cfa-16" after the pop. A copy of a stack should start this far below sp.
inline constexpr uint64_t kRedZone = 128;

struct Registers {
  RemoteAddress pc;
  RemoteAddress sp;
  uint64_t fp = 0;  // rbp, x29
  uint64_t lr = 0;  // x30; x86-64 has none
  bool fp_known = true;
  bool lr_known = false;
  bool bx_known = false;
  uint64_t bx = 0;  // rbx; aarch64: never known
};

// How a frame was found: how its callee's registers gave it.
enum class FoundBy : uint8_t { registers, cfi, frame_pointer, signal, restart, code };

enum class StackEnd : uint8_t {
  reached_end,  // the outermost frame: its return address is undefined, or 0
  truncated,    // the stack bytes end before the stack does, and no more could be read
  no_cfi,       // code without any description, and no valid frame pointer
  bad_memory,   // the words found are invalid: no code there, or a stack that does not shrink
  too_deep,     // more frames than the cap
};

// "cfi", "frame pointer": as a recording has it (Frame::found_by).
std::string_view describe(FoundBy found_by);
// The marker in a stack in place of callers that were not reached; empty if all were.
const char* describe(StackEnd end);

struct NativeFrame {
  RemoteAddress
      pc;  // the instruction that runs, or the return address into this frame; none: not known (restart)
  RemoteAddress sp;     // while it runs: the frame owns [sp, cfa)
  RemoteAddress cfa;    // the caller's sp; equal to sp if not known (the last frame of some stacks)
  uint32_t module = 0;  // as given to ModuleMap::add; kNoModule: no module is mapped there
  FoundBy found_by = FoundBy::registers;
  bool exact_pc = false;  // pc is an instruction that runs, not a return address
  // The address to name: inside the call instruction for a return address.
  RemoteAddress lookup_pc() const { return exact_pc || !pc ? pc : pc - 1; }
};

struct NativeStack {
  std::vector<NativeFrame> frames;  // innermost first
  StackEnd end = StackEnd::reached_end;
  unsigned read_more = 0;  // words that were not in the stack bytes
};

// Where to resume the stack when unwinding cannot continue: the place of a Python entry frame in the C frame
// of the interpreter loop. Its distance to that frame's CFA is constant in one build of Python.
struct Restart {
  RemoteAddress anchor;    // in the interpreter loop's frame
  RemoteAddress cfa;       // of that frame
  int32_t ra_offset = -8;  // the return address is at cfa + ra_offset
  int32_t fp_offset = 0;   // the caller's frame pointer is at cfa + fp_offset; 0: not known
};

struct UnwindInput {
  Registers registers;
  RemoteAddress stack_start;
  std::span<const std::byte> stack;
  // Reads one word of the target's stack that is not in `stack`; may be empty (a dump read later).
  std::function<bool(RemoteAddress, uint64_t&)> read_more = {};
  std::span<const Restart> restarts = {};  // sorted by address
  // Reads bytes of the target's code, all of them or false. Without it, no frame pointer and no rule from a
  // function's instructions is followed where call frame information is missing or wrong: the result must be
  // the return address of a call.
  std::function<bool(RemoteAddress, std::span<std::byte>)> read_code = {};
};

class Unwinder {
 public:
  // The table of a module, requested when a stack first leads there; nullptr: it has none. From then on its
  // bias must be right in the map.
  using TableOf = std::function<const UnwindTable*(uint32_t module)>;
  // The rules from a module's code, requested after its table has none. May be empty.
  using CodeOf = std::function<CodeRules*(uint32_t module)>;
  // 20,000 frames of a recursion are beyond what anyone reads.
  static constexpr size_t kMaxFrames = 4096;
  // 97 to 99.7 % of all frames of a Python with NumPy and scikit-learn hit.
  static constexpr size_t kCacheSlots = 4096;

  // The map must outlive the Unwinder. `machine`: EM_X86_64 or EM_AARCH64.
  Unwinder(const ModuleMap& map, uint16_t machine, TableOf table_of, CodeOf code_of = {});

  // `out` is emptied first; its memory is reused.
  void unwind(const UnwindInput& input, NativeStack& out);

 private:
  struct Slot {
    uint64_t pc = 0;
    Rule rule;
    uint32_t module = kNoModule;
    uint32_t generation = 0;    // of the map, its lower half: an entry of an earlier one is invalid
    bool mapped = false;        // there is code at this pc
    bool by_code = false;       // the rule comes from the instructions
    bool until_return = false;  // and only from those still to run
  };
  template <class Arch>
  class Walk;
  const Slot& look_up(RemoteAddress pc, bool exact);
  Rule by_stack_pointer(const Slot& slot, RemoteAddress pc, bool exact);
  template <class Arch>
  bool returns_from_call(const UnwindInput& input, uint64_t pc);
  template <class Arch>
  uint64_t find_frame_pointer(const UnwindInput& input, const Registers& regs, const Rule& rule);
  template <class Arch>
  uint64_t called_by(const UnwindInput& input, uint64_t pc);

  const ModuleMap& map_;
  uint16_t machine_;
  TableOf table_of_;
  CodeOf code_of_;
  std::vector<Slot> cache_;
  std::vector<const UnwindTable*> tables_;
  std::vector<uint8_t> asked_;
  uint64_t generation_ = 0;
  std::unordered_map<uint64_t, bool> calls_;       // return addresses that frame pointers led to
  std::unordered_map<uint64_t, uint64_t> called_;  // by return address: the call's target
};

}  // namespace phlox::unwind
