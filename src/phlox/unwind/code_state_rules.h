// Turns a state of the interpretation into a rule of an unwind table. CodeFlow calls it once for each
// instruction with a claim. It judges one state by itself: whether the paths that lead there are valid is
// decided before.
#pragma once

#include "phlox/unwind/rule.h"
#include "phlox/unwind/stack_state.h"

namespace phlox::unwind {

// Inside a function, by the known facts. kind none: they are not enough.
Rule rule_of(const StackState& s);
// At a return, in terms of the registers at the start: the rule that held there.
Rule rule_at_return(const StackState& s);

}  // namespace phlox::unwind
