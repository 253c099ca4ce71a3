// Finds the interpreter in a process: searches its modules, the most likely one first, each with an ordered
// list of strategies. The result names the successful strategy; a failure has the reason of each. Reads maps,
// files and memory of the target; executes nothing, writes nothing. search/ searches one module: which Python
// it is (identity), where its interpreter may be (strategies), which interpreter that would be (candidates),
// and whether it is one (validation).
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/process/maps.h"
#include "phlox/python/interpreter.h"

namespace phlox::python {

// One strategy that was tried on one module, and its result, with the addresses. For --verbose.
struct Attempt {
  std::string strategy;  // "symbol"
  std::string module;    // its path
  std::string reason;    // why it failed; for the successful one: all addresses
  bool found = false;
};

// A process as locate() sees it, so that a test can make one up.
struct ProcessView {
  pid_t pid = 0;           // for messages only
  std::string executable;  // as the maps name it; empty: the first module
  std::vector<process::Mapping> maps;
  std::function<Result<process::LoadedModule>(const process::Module&)> load;
  memory::RemoteMemory& memory;
  process::Budget budget = std::make_shared<elf::ReadBudget>();
};

// not_python: there is none (yet); target_state: there is one, but it is not up yet or no longer;
// unsupported_python: one without a row, or another implementation; permission: the memory cannot be read.
// `attempts` gets the strategies in order; the successful one is the last.
Result<Interpreter> locate(const ProcessView& view, std::vector<Attempt>* attempts = nullptr);
// For a live process.
Result<Interpreter> locate(pid_t pid, std::vector<Attempt>* attempts = nullptr);

}  // namespace phlox::python
