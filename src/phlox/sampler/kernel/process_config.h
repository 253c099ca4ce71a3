// The facts about a process for the program in the kernel: where its Python keeps the data, from the row of
// the layout table, and how a thread finds its own thread state. CPython keeps that as pthread-specific data
// under autoTSSkey (Python/pystate.c), and the C library keeps those in the thread's own block: glibc the
// first 32 keys at a fixed distance from the thread pointer, musl behind a pointer. Searched for once, and
// proved with the present threads. 3.15 has no such key, and an embedder may have more than 32: then a thread
// searches the interpreters' lists for the state whose thread_id is its thread pointer.
#pragma once

#include "phlox/base/result.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/interpreter.h"
#include "phlox/sampler/kernel/wire.h"

namespace phlox::sampler {

// The hint for a user who cannot have this mode.
inline constexpr const char* kOtherModes = "without --mode kernel phlox takes the best of the other modes";

// Pure. Error: a Python that cannot be walked in the kernel, and why.
Result<kernel_process> kernel_process_of(const python::Interpreter& interpreter);

// Sets `where`'s state_*. False: no thread of it has its state in its place (yet).
bool find_thread_state_word(const python::Interpreter& interpreter, memory::RemoteMemory& memory,
                            kernel_process& where);

// If there is no such word. False: no thread state has its owner's id (yet).
bool find_listed_threads(const python::Interpreter& interpreter, memory::RemoteMemory& memory,
                         kernel_process& where);

}  // namespace phlox::sampler
