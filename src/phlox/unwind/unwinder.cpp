#include "phlox/unwind/unwinder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "phlox/unwind/arch/aarch64.h"
#include "phlox/unwind/arch/x86_64.h"
#include "phlox/unwind/frame_steps.h"

namespace phlox::unwind {

std::string_view describe(FoundBy found_by) {
  switch (found_by) {
    case FoundBy::registers:
      return "registers";
    case FoundBy::cfi:
      return "cfi";
    case FoundBy::frame_pointer:
      return "frame pointer";
    case FoundBy::signal:
      return "signal";
    case FoundBy::restart:
      return "restart";
    case FoundBy::code:
      return "instructions";
  }
  return "";
}

const char* describe(StackEnd end) {
  switch (end) {
    case StackEnd::truncated:
      return "(native callers unknown: the stack is deeper than what was copied)";
    case StackEnd::no_cfi:
      return "(native callers unknown: no unwind information)";
    case StackEnd::bad_memory:
      return "(native callers unknown: the stack makes no sense)";
    case StackEnd::too_deep:
      return "(native callers left out: too many)";
    case StackEnd::reached_end:
      break;
  }
  return "";
}

Unwinder::Unwinder(const ModuleMap& map, uint16_t machine, TableOf table_of, CodeOf code_of)
    : map_(map),
      machine_(machine),
      table_of_(std::move(table_of)),
      code_of_(std::move(code_of)),
      cache_(kCacheSlots) {}

const Unwinder::Slot& Unwinder::look_up(RemoteAddress pc, bool exact) {
  // Return addresses and exact ones of the same value have different keys: pc - 1 and pc.
  const uint64_t key = exact ? pc.value : pc.value - 1;
  Slot& slot = cache_[(key ^ key >> 12) & (kCacheSlots - 1)];
  const auto generation = static_cast<uint32_t>(generation_);
  if (slot.pc == key && slot.generation == generation) return slot;
  slot = Slot{key, {}, kNoModule, generation, false, false, false};
  const ModuleMap::Entry* entry = map_.find(RemoteAddress(key));
  // A return to a trampoline goes to its first byte; not every description begins one byte earlier, as
  // glibc's does.
  const bool at_start = entry == nullptr && !exact;
  if (at_start) entry = map_.find(pc);
  if (entry == nullptr) return slot;
  slot.mapped = !at_start;
  if (entry->module == kNoModule) {
    if (!exact) slot.rule = entry->returned_to;
    return slot;
  }
  slot.module = entry->module;
  if (entry->module >= tables_.size()) {
    tables_.resize(entry->module + size_t{1}, nullptr);
    asked_.resize(tables_.size(), 0);
  }
  if (asked_[entry->module] == 0) {
    asked_[entry->module] = 1;
    tables_[entry->module] = table_of_(entry->module);
  }
  const UnwindTable* table = tables_[entry->module];
  if (table != nullptr && table->machine() == machine_) {
    slot.rule = at_start ? Rule{} : table->find(ImageAddress(key - entry->bias));
    if (!exact && slot.rule.kind != RuleKind::signal) {
      const Rule rule = table->find(ImageAddress(pc.value - entry->bias));
      if (rule.kind == RuleKind::signal) slot.rule = rule;
    }
  }
  if (slot.rule.kind != RuleKind::none || at_start || !code_of_) return slot;
  if (CodeRules* code = code_of_(entry->module)) {
    const auto found = code->find(ImageAddress(pc.value - entry->bias), exact);
    slot.rule = found.rule;
    slot.by_code = found.rule.kind != RuleKind::none;
    slot.until_return = found.until_return;
  }
  return slot;
}

namespace {

// Whether a rule needs the stack pointer.
bool needs_sp(const Rule& rule) {
  if (rule.kind == RuleKind::signal) return true;
  return rule.kind == RuleKind::plain &&
         (rule.base == CfaBase::sp || rule.base == CfaBase::deref_sp || rule.base == CfaBase::plt);
}

StackEnd end_of(StepOutcome outcome) {
  switch (outcome) {
    case StepOutcome::no_rule:
      return StackEnd::no_cfi;
    case StepOutcome::unreadable:
      return StackEnd::truncated;
    case StepOutcome::senseless:
      return StackEnd::bad_memory;
    case StepOutcome::stepped:
    case StepOutcome::end:
      break;
  }
  return StackEnd::reached_end;
}

// Limits of the search for a frame pointer: how far out it lies, and how far before pc its function begins.
constexpr uint64_t kLargestFrame = 4096;
constexpr uint64_t kLongestFunction = 65536;

}  // namespace

template <class Arch>
bool Unwinder::returns_from_call(const UnwindInput& input, uint64_t pc) {
  if (!input.read_code) return false;
  if (calls_.size() > kCacheSlots) calls_.clear();
  const auto [at, fresh] = calls_.try_emplace(pc, false);
  if (!fresh) return at->second;
  std::array<std::byte, Arch::kLongestCall> code;
  // A call may be the first instruction of a mapping.
  for (size_t size = code.size(); size >= 2; --size) {
    const std::span bytes = std::span(code).first(size);
    if (!input.read_code(RemoteAddress(pc - size), bytes)) continue;
    return at->second = Arch::ends_in_call(bytes);
  }
  return false;
}

template <class Arch>
uint64_t Unwinder::called_by(const UnwindInput& input, uint64_t pc) {
  if (called_.size() > kCacheSlots) called_.clear();
  const auto [at, fresh] = called_.try_emplace(pc, 0);
  if (!fresh) return at->second;
  std::array<std::byte, Arch::kShortestDirectCall> code;
  if (input.read_code(RemoteAddress(pc - code.size()), code)) at->second = Arch::called_by(code, pc);
  return at->second;
}

// For a blocked thread the kernel reports two registers, but not the frame pointer, which the current
// function may need (all of Ubuntu's since 24.04). How far its instructions have moved the stack pointer
// serves as well.
Rule Unwinder::by_stack_pointer(const Slot& slot, RemoteAddress pc, bool exact) {
  const bool by_fp = slot.rule.kind == RuleKind::plain && slot.rule.base == CfaBase::fp;
  if (!by_fp || slot.by_code || slot.module == kNoModule || !code_of_) return {};
  const ModuleMap::Entry* entry = map_.find(exact ? pc : pc - 1);
  CodeRules* code = entry != nullptr && entry->module == slot.module ? code_of_(slot.module) : nullptr;
  if (code == nullptr) return {};
  return code->by_stack_pointer(ImageAddress(pc.value - entry->bias), exact);
}

// If the instructions do not reveal the frame pointer, searches for it further out: where a frame would end
// at the return address of a call to this very function, which begins not far before pc, and where the stack
// is as on a function's entry. 0: not found.
template <class Arch>
uint64_t Unwinder::find_frame_pointer(const UnwindInput& input, const Registers& regs, const Rule& rule) {
  const bool by_fp = rule.kind == RuleKind::plain && rule.base == CfaBase::fp && rule.ra == RaRule::at_cfa;
  if (!by_fp || regs.fp_known || !input.read_code) return 0;
  const uint64_t end = input.stack_start.value + input.stack.size();
  const ModuleMap::Entry* here = map_.find(regs.pc - 1);
  for (uint64_t fp = regs.sp.value & ~uint64_t{7}; here != nullptr && fp < regs.sp.value + kLargestFrame;
       fp += 8) {
    const uint64_t saved_at = plus(plus(fp, rule.cfa_offset), rule.ra_offset);
    const uint64_t into = saved_at - input.stack_start.value;
    if (saved_at < regs.sp.value) continue;
    if (end - input.stack_start.value < 8 || into > input.stack.size() - 8) return 0;
    uint64_t pc = 0;
    std::memcpy(&pc, input.stack.data() + into, 8);
    pc = Arch::strip(pc, map_.highest());
    if (pc == 0 || map_.find(RemoteAddress(pc - 1)) == nullptr) continue;
    const uint64_t target = called_by<Arch>(input, pc);
    if (target == 0 || target >= regs.pc.value || regs.pc.value - target > kLongestFunction) continue;
    if (target < here->start) continue;
    const Rule start = look_up(RemoteAddress(target), true).rule;
    if (start.kind != RuleKind::plain || start.base != CfaBase::sp || start.cfa_offset != Arch::kCfaAtStart)
      continue;
    const UnwindTable* table = here->module < tables_.size() ? tables_[here->module] : nullptr;
    if (table == nullptr) return 0;
    // Between two functions is undescribed padding, up to the alignment of the next one.
    bool same_function = true;
    for (uint64_t next = (target | 15) + 1; next < regs.pc.value && same_function; next += 16) {
      same_function = table->find(ImageAddress(next - 1 - here->bias)).kind != RuleKind::none;
    }
    if (same_function) return fp;
  }
  return 0;
}

// One stack, frame by frame from the innermost.
template <class Arch>
class Unwinder::Walk {
 public:
  Walk(Unwinder& unwinder, const UnwindInput& input, NativeStack& out)
      : unwinder_(unwinder), input_(input), out_(out), words_(input, unwinder.map_, out.read_more) {}

  void run() {
    regs_ = input_.registers;
    regs_.pc = words_.template code<Arch>(regs_.pc.value);
    out_.frames.push_back({regs_.pc, regs_.sp, regs_.sp, kNoModule, FoundBy::registers, true});
    while (true) {
      FrameStep step;
      const StepOutcome outcome = take(step);
      if (outcome != StepOutcome::stepped) {
        out_.end = end_of(outcome);
        return;
      }
      out_.frames.back().cfa = RemoteAddress(step.cfa);
      if (out_.frames.size() >= kMaxFrames) {
        out_.end = StackEnd::too_deep;
        return;
      }
      regs_ = step.caller;
      out_.frames.push_back({regs_.pc, regs_.sp, regs_.sp, kNoModule, step.found_by, step.exact});
    }
  }

 private:
  // Each proves its result, or fails with the reason.
  struct Strategy {
    StepOutcome (Walk::*step)(FrameStep&);
    StepOutcome after;  // it is tried after failures up to this one
  };

  StepOutcome take(FrameStep& step) {
    static constexpr Strategy kStrategies[] = {
        {&Walk::by_rule, StepOutcome::no_rule},
        {&Walk::by_stack_pointer, StepOutcome::no_rule},
        {&Walk::by_found_frame_pointer, StepOutcome::no_rule},
        // A description may be wrong, as in builds rewritten by BOLT.
        {&Walk::by_frame_pointer, StepOutcome::senseless},
        {&Walk::by_restart, StepOutcome::unreadable},
    };
    here_ = next_ != nullptr ? *next_ : unwinder_.look_up(regs_.pc, out_.frames.back().exact_pc);
    next_ = nullptr;
    out_.frames.back().module = here_.module;
    StepOutcome worst = StepOutcome::no_rule;
    for (const Strategy& strategy : kStrategies) {
      if (worst > strategy.after) continue;
      const StepOutcome outcome = (this->*strategy.step)(step);
      if (outcome < StepOutcome::no_rule) return outcome;
      worst = std::max(worst, outcome);
    }
    return worst;
  }

  // By the table, or by the instructions of the function.
  StepOutcome by_rule(FrameStep& step) {
    const bool sp_known = std::exchange(sp_known_, true);
    if (!sp_known && needs_sp(here_.rule)) return StepOutcome::no_rule;
    const StepOutcome outcome = step_by_rule<Arch>(here_.rule, regs_, words_, step);
    if (outcome != StepOutcome::stepped) return outcome;
    if (here_.by_code) return checked_code(step);
    if (step.caller.pc) return checked(step);
    // At the start of a thread or program pc is 0 if the CFI does not mark it.
    out_.frames.back().cfa = RemoteAddress(step.cfa);
    return StepOutcome::end;
  }

  StepOutcome by_stack_pointer(FrameStep& step) {
    if (regs_.fp_known) return StepOutcome::no_rule;
    const Rule rule = unwinder_.by_stack_pointer(here_, regs_.pc, out_.frames.back().exact_pc);
    const StepOutcome outcome = step_by_rule<Arch>(rule, regs_, words_, step);
    return outcome == StepOutcome::stepped ? checked_code(step) : outcome;
  }

  StepOutcome by_found_frame_pointer(FrameStep& step) {
    const uint64_t fp = regs_.fp_known ? 0 : unwinder_.find_frame_pointer<Arch>(input_, regs_, here_.rule);
    if (fp == 0) return StepOutcome::no_rule;
    regs_.fp = fp;
    regs_.fp_known = true;
    const StepOutcome outcome = step_by_rule<Arch>(here_.rule, regs_, words_, step);
    if (outcome != StepOutcome::stepped) return outcome;
    step.found_by = FoundBy::frame_pointer;
    return here_.by_code ? checked_code(step) : checked(step);
  }

  StepOutcome by_frame_pointer(FrameStep& step) {
    if (!step_by_frame_pointer<Arch>(unwinder_.map_, regs_, words_, step) || !returns_from_call(step))
      return StepOutcome::no_rule;
    // There the pair of words is where the function made room for it, not at the end of its frame.
    sp_known_ = !Arch::kHasLinkRegister;
    return StepOutcome::stepped;
  }

  // Resumes at the next Python frame further out.
  StepOutcome by_restart(FrameStep& step) {
    const auto found = step_by_restart<Arch>(input_, regs_.sp, words_);
    if (!found || out_.frames.size() == kMaxFrames ||
        unwinder_.map_.find(found->second.caller.pc - 1) == nullptr)
      return StepOutcome::no_rule;
    out_.frames.push_back({{}, found->first.anchor, found->first.cfa, kNoModule, FoundBy::restart, false});
    step = found->second;
    return StepOutcome::stepped;
  }

  // Whether the caller lies further out, and in code.
  StepOutcome checked(const FrameStep& step) {
    if (!grows(step)) return StepOutcome::senseless;
    const Slot& caller = unwinder_.look_up(step.caller.pc, step.exact);
    if (!caller.mapped) return StepOutcome::senseless;
    next_ = &caller;
    return StepOutcome::stepped;
  }

  // A result from instructions is proven like a frame pointer: by the call before the return address. Until
  // then, no table is requested for it. A path that the program never takes, from one function into the next,
  // is recognised by the stack's alignment.
  StepOutcome checked_code(FrameStep& step) {
    if (!grows(step) || unwinder_.map_.find(step.caller.pc - 1) == nullptr) return StepOutcome::senseless;
    step.found_by = FoundBy::code;
    const bool aligned = !here_.until_return || (step.cfa & 15) == 0;
    return aligned && returns_from_call(step) ? StepOutcome::stepped : StepOutcome::no_rule;
  }

  bool grows(const FrameStep& step) const {
    return step.found_by == FoundBy::signal || step.cfa > regs_.sp.value ||
           (Arch::kHasLinkRegister && (out_.frames.size() == 1 || out_.frames.back().exact_pc));
  }

  bool returns_from_call(const FrameStep& step) {
    return unwinder_.returns_from_call<Arch>(input_, step.caller.pc.value);
  }

  Unwinder& unwinder_;
  const UnwindInput& input_;
  NativeStack& out_;
  StackWords words_;
  Registers regs_;
  Slot here_;                   // of the frame; a copy: the next look_up() may reuse the slot
  const Slot* next_ = nullptr;  // of the caller, if it was looked up
  bool sp_known_ = true;        // if not, regs_.sp is no further out than the real one
};

void Unwinder::unwind(const UnwindInput& input, NativeStack& out) {
  out.frames.clear();
  out.end = StackEnd::reached_end;
  out.read_more = 0;
  if (generation_ != map_.generation()) {
    // A module's number may mean another file now.
    tables_.clear();
    asked_.clear();
    calls_.clear();
    called_.clear();
    generation_ = map_.generation();
  }
  if (machine_ == X86_64::kMachine) return Walk<X86_64>(*this, input, out).run();
  if (machine_ == Aarch64::kMachine) return Walk<Aarch64>(*this, input, out).run();
  out.end = StackEnd::no_cfi;
}

}  // namespace phlox::unwind
