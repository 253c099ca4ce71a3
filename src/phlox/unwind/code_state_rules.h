// What a state of the interpretation says in the words of an unwind table. Used by CodeFlow, once for each
// instruction that a claim is made of. It judges one state by itself: whether the ways that lead there can be
// believed is decided before.
#pragma once

#include "phlox/unwind/rule.h"
#include "phlox/unwind/stack_state.h"

namespace phlox::unwind {

// Inside a function, by what is known there. kind none: that is not enough.
Rule rule_of(const StackState& s);
// At a return, in terms of what the registers were at the start: the rule that held there.
Rule rule_at_return(const StackState& s);

}  // namespace phlox::unwind
