// Finds the interpreter in a process: an ordered list of strategies, each a function; the result says which one won,
// and a failure what each of them ran into. Every candidate is validated before it is believed (its thread states point back to it).
// Reads maps, files and memory of the target; executes nothing, writes nothing.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/interpreter.h"
#include "phlox/target/maps.h"

namespace phlox::python {

// One strategy that was tried on one module, and why it brought nothing. For --verbose.
struct Attempt {
  std::string strategy;  // "symbol _PyRuntime"
  std::string module;
  std::string reason;
};

// not_python: there is none (yet: target_state when the library is mapped but the interpreter is not up);
// unsupported_python: one that no row covers; permission: the memory cannot be read.
Result<Interpreter> locate(pid_t pid, std::vector<Attempt>* attempts = nullptr);

// Whether `interpreters_head` leads to interpreters whose thread states point back. `reason` says what does not hold.
bool validate(const Interpreter& candidate, memory::RemoteMemory& memory, std::string& reason);

}  // namespace phlox::python
