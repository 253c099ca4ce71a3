// The limit of a thread's stack (ulimit -s), which a shell or a service may have made smaller than phlox
// needs.
#pragma once

namespace phlox {

// Gives this program and its later threads a stack of 1 MiB at least. Call it before other threads exist.
// False: the hard limit forbids it.
bool ensure_stack();
// In the child of a fork: the limit as it was before ensure_stack(). Async-signal-safe.
void restore_stack_limit();

}  // namespace phlox
