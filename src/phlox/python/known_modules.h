// What was found in the modules of a program, for as long as it imports no other. To find a module takes a
// look at the names of all: milliseconds where there are a thousand, more than to read a hundred tasks. Also
// the code objects of the tasks that were read last.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "phlox/python/asyncio_module.h"
#include "phlox/python/task_codes.h"
#include "phlox/python/trio_module.h"

namespace phlox::python {

struct KnownModules {
  // Forgets what was known with another modules_stamp().
  void is_now(uint64_t modules) {
    if (modules == stamp && modules != 0) return;
    *this = {};
    stamp = modules;
  }

  uint64_t stamp = 0;
  bool has_tasks = false;                              // the last reading found some
  std::unordered_map<uint64_t, AsyncioNames> asyncio;  // by interpreter
  std::unordered_map<uint64_t, TrioNames> trio;
  std::unordered_map<uint64_t, TaskLists> lists;
  std::unordered_map<uint64_t, RemoteAddress> threads;  // that was found to run a loop, by the loop
  TaskCodes codes;
};

}  // namespace phlox::python
