// Finds the interpreter in a process: its modules in the order in which they are likely to hold one, in each
// an ordered list of strategies. The result says which one won, and a failure what each of them ran into.
// Reads maps, files and memory of the target; executes nothing, writes nothing. How one module is searched
// stands in search/: which Python it is (identity), where its interpreter may be (strategies), what it would
// be there (candidates), and whether it is one (validation).
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/interpreter.h"
#include "phlox/target/maps.h"

namespace phlox::python {

// One strategy that was tried on one module, and what it ran into, with the addresses. For --verbose.
struct Attempt {
  std::string strategy;  // "symbol"
  std::string module;    // its path
  std::string reason;    // why it brought nothing; of the one that found it: where everything lies
  bool found = false;
};

// A process as locate() looks at it, so that a test can make one up.
struct ProcessView {
  pid_t pid = 0;           // for messages only
  std::string executable;  // as the maps name it; empty: the first module
  std::vector<target::Mapping> maps;
  std::function<Result<target::LoadedModule>(const target::Module&)> load;
  memory::RemoteMemory& memory;
  target::Budget budget = std::make_shared<elf::ReadBudget>();
};

// not_python: there is none (yet); target_state: there is one, but it is not up yet or not any more;
// unsupported_python: one that no row covers, or another implementation; permission: the memory cannot be
// read.
// `attempts` gets what was tried, in order; the one that found it is the last.
Result<Interpreter> locate(const ProcessView& view, std::vector<Attempt>* attempts = nullptr);
// Of a live process.
Result<Interpreter> locate(pid_t pid, std::vector<Attempt>* attempts = nullptr);

}  // namespace phlox::python
