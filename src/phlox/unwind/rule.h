// How to find the caller of one native frame: a row of an unwind table. Only four registers are followed
// (stack pointer, frame pointer, return address, rbx); a profiler needs no more.
//
//   CFA = base + cfa_offset                  base: sp, fp, bx, *(sp + inner), *(fp + inner), see CfaBase
//   caller's sp = CFA
//   caller's fp = fp | *(CFA + fp_offset) | *(fp + fp_offset)
//   caller's bx = bx | *(CFA + bx_offset)    x86-64 only
//   caller's pc = *(CFA + ra_offset) | x30
#pragma once

#include <cstdint>

namespace phlox::unwind {

// The kind of code.
enum class RuleKind : uint8_t {
  none,  // no CFI covers it, or CFI that we do not follow (other registers, unknown expressions)
  plain,
  end,     // the return address is undefined: the outermost frame
  signal,  // the kernel's signal trampoline: registers are in an rt_sigframe at sp
};

enum class CfaBase : uint8_t {
  sp,
  fp,
  deref_sp,  // *(sp + inner): hand-written assembly that saved its old stack pointer
  deref_fp,  // *(fp + inner): functions that realign their stack (gcc's DRAP)
  bx,        // rbx: the dynamic linker's trampolines of lazy binding (_dl_runtime_resolve)
  plt,       // sp, and 8 more when (pc & 15) >= inner: a lazily bound procedure linkage table entry of x86-64
};

enum class FpRule : uint8_t { same, at_cfa, at_fp, unknown };
enum class BxRule : uint8_t { same, at_cfa, unknown };
enum class RaRule : uint8_t { at_cfa, link_register };

struct Rule {
  RuleKind kind = RuleKind::none;
  CfaBase base = CfaBase::sp;
  FpRule fp = FpRule::same;
  RaRule ra = RaRule::at_cfa;
  BxRule bx = BxRule::same;
  uint8_t unused = 0;  // a table is stored in a file as it is in memory
  int16_t bx_offset = 0;
  int32_t cfa_offset = 0;
  int32_t inner = 0;
  int32_t fp_offset = 0;
  int32_t ra_offset = 0;

  friend bool operator==(const Rule&, const Rule&) = default;
};
static_assert(sizeof(Rule) == 24);

}  // namespace phlox::unwind
