// One step from a frame to its caller: by a rule, by a signal's frame, by the frame pointer, or by a Python
// entry frame further out. The Unwinder (unwinder.cpp) chooses among them, and judges the results.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "phlox/unwind/unwinder.h"

namespace phlox::unwind {

// The stack's words: from the bytes at hand, otherwise by a request.
class StackWords {
 public:
  StackWords(const UnwindInput& input, const ModuleMap& map, unsigned& asked)
      : input_(input), highest_code_(map.highest()), asked_(asked) {}

  bool read(uint64_t address, uint64_t& value) {
    const uint64_t into = address - input_.stack_start.value;
    if (input_.stack.size() >= 8 && into <= input_.stack.size() - 8) {
      std::memcpy(&value, input_.stack.data() + into, 8);
      return true;
    }
    if (!input_.read_more || !is_plausible(RemoteAddress(address))) return false;
    ++asked_;
    return input_.read_more(RemoteAddress(address), value);
  }

  // The address of code that a word or register holds, without its authentication code.
  template <class Arch>
  RemoteAddress code(uint64_t word) const {
    return RemoteAddress(Arch::strip(word, highest_code_));
  }

 private:
  const UnwindInput& input_;
  uint64_t highest_code_;
  unsigned& asked_;
};

inline uint64_t plus(uint64_t base, int32_t offset) {
  return base + static_cast<uint64_t>(int64_t{offset});
}

struct FrameStep {
  Registers caller;
  uint64_t cfa = 0;
  FoundBy found_by = FoundBy::cfi;
  bool exact = false;
};

// From no_rule on: failures, the worst last.
enum class StepOutcome : uint8_t { stepped, end, no_rule, senseless, unreadable };

template <class Arch>
StepOutcome step_by_signal(const Registers& regs, StackWords& words, FrameStep& step) {
  uint64_t pc = 0, sp = 0, fp = 0;
  if (!words.read(regs.sp.value + Arch::kSignalPc, pc) || !words.read(regs.sp.value + Arch::kSignalSp, sp) ||
      !words.read(regs.sp.value + Arch::kSignalFp, fp)) {
    return StepOutcome::unreadable;
  }
  step.caller = {words.code<Arch>(pc), RemoteAddress(sp), fp, 0, true, false};
  if constexpr (Arch::kSignalHasLr)
    step.caller.lr_known = words.read(regs.sp.value + Arch::kSignalLr, step.caller.lr);
  if constexpr (Arch::kSignalBx != 0)
    step.caller.bx_known = words.read(regs.sp.value + Arch::kSignalBx, step.caller.bx);
  // On the thread's own stack the frame ends where the interrupted code's begins; an alternate stack lies
  // elsewhere.
  step.cfa = sp > regs.sp.value ? sp : regs.sp.value;
  step.found_by = FoundBy::signal;
  step.exact = true;
  return StepOutcome::stepped;
}

template <class Arch>
StepOutcome step_by_rule(const Rule& rule, const Registers& regs, StackWords& words, FrameStep& step) {
  if (rule.kind == RuleKind::none) return StepOutcome::no_rule;
  if (rule.kind == RuleKind::end) return StepOutcome::end;
  if (rule.kind == RuleKind::signal) return step_by_signal<Arch>(regs, words, step);
  uint64_t base = regs.sp.value;
  switch (rule.base) {
    case CfaBase::sp:
      break;
    case CfaBase::plt:
      base += (regs.pc.value & 15) >= static_cast<uint64_t>(rule.inner) ? 8 : 0;
      break;
    case CfaBase::deref_sp:
      if (!words.read(plus(base, rule.inner), base)) return StepOutcome::unreadable;
      break;
    case CfaBase::bx:
      if (!regs.bx_known) return StepOutcome::no_rule;
      base = regs.bx;
      break;
    case CfaBase::fp:
    case CfaBase::deref_fp:
      if (!regs.fp_known) return StepOutcome::no_rule;
      base = regs.fp;
      if (rule.base == CfaBase::deref_fp && !words.read(plus(base, rule.inner), base))
        return StepOutcome::unreadable;
      break;
  }
  const uint64_t cfa = plus(base, rule.cfa_offset);
  if (cfa < regs.sp.value || !is_plausible(RemoteAddress(cfa))) return StepOutcome::senseless;
  uint64_t pc = regs.lr;
  if (rule.ra == RaRule::at_cfa) {
    if (!words.read(plus(cfa, rule.ra_offset), pc)) return StepOutcome::unreadable;
  } else if (!regs.lr_known) {
    return StepOutcome::senseless;
  }
  step.caller = {words.code<Arch>(pc), RemoteAddress(cfa), regs.fp, 0, regs.fp_known, false};
  if (rule.fp == FpRule::unknown) step.caller.fp_known = false;
  if (rule.fp == FpRule::at_cfa || rule.fp == FpRule::at_fp) {
    const uint64_t saved_at = plus(rule.fp == FpRule::at_cfa ? cfa : regs.fp, rule.fp_offset);
    const bool known = rule.fp == FpRule::at_cfa || regs.fp_known;
    step.caller.fp_known = known && words.read(saved_at, step.caller.fp);
    // gcc's epilogues keep "fp at cfa-16" after the pop: the slot is then below sp, and fp is restored.
    if (!step.caller.fp_known && saved_at < regs.sp.value && regs.fp_known) {
      step.caller.fp = regs.fp;
      step.caller.fp_known = true;
    }
  }
  step.caller.bx = regs.bx;
  step.caller.bx_known = regs.bx_known && rule.bx != BxRule::unknown;
  if (rule.bx == BxRule::at_cfa) {
    const uint64_t saved_at = plus(cfa, rule.bx_offset);
    // As with fp: a slot below sp that was not copied has been popped.
    const bool popped = saved_at < regs.sp.value && regs.bx_known;
    step.caller.bx_known = words.read(saved_at, step.caller.bx) || popped;
  }
  step.cfa = cfa;
  step.found_by = FoundBy::cfi;
  step.exact = false;
  return StepOutcome::stepped;
}

// For code without a description, or with one that does not fit: if fp points at a pair of words that can be
// a frame, sets its caller. The caller has to check that this is the return address of a call.
template <class Arch>
bool step_by_frame_pointer(const ModuleMap& map, const Registers& regs, StackWords& words, FrameStep& step) {
  uint64_t pc = 0, fp = 0;
  if (!regs.fp_known || regs.fp < regs.sp.value || (regs.fp & 7) != 0) return false;
  if (!words.read(regs.fp, fp) || !words.read(regs.fp + 8, pc)) return false;
  pc = words.code<Arch>(pc).value;
  if (fp != 0 && fp <= regs.fp) return false;
  if (pc == 0 || map.find(RemoteAddress(pc - 1)) == nullptr) return false;
  step.caller = {RemoteAddress(pc), RemoteAddress(regs.fp + 16), fp, 0, true, false};
  step.cfa = regs.fp + 16;
  step.found_by = FoundBy::frame_pointer;
  step.exact = false;
  return true;
}

// The innermost Python entry beyond sp, whose C frame ends at a known constant distance.
template <class Arch>
std::optional<std::pair<Restart, FrameStep>> step_by_restart(const UnwindInput& input, RemoteAddress beyond,
                                                             StackWords& words) {
  const auto next = std::upper_bound(input.restarts.begin(), input.restarts.end(), beyond,
                                     [](RemoteAddress a, const Restart& r) { return a < r.anchor; });
  uint64_t pc = 0;
  if (next == input.restarts.end() || next->cfa <= next->anchor ||
      !words.read(plus(next->cfa.value, next->ra_offset), pc))
    return std::nullopt;
  FrameStep step;
  step.caller = {words.code<Arch>(pc), next->cfa, 0, 0, false, false};
  if (next->fp_offset != 0)
    step.caller.fp_known = words.read(plus(next->cfa.value, next->fp_offset), step.caller.fp);
  step.cfa = next->cfa.value;
  step.found_by = FoundBy::cfi;
  return std::pair(*next, step);
}

}  // namespace phlox::unwind
