// An interpreter found in a process, with the data that the sampler needs to read its stacks. Made by
// locate() (locate.h), outside the hot path.
#pragma once

#include <cstdint>
#include <string>

#include "phlox/base/address.h"
#include "phlox/python/layout.h"

namespace phlox::python {

struct Interpreter {
  Layout layout;  // the row, with the target's _Py_DebugOffsets if it has them
  uint8_t major = 0, minor = 0, micro = 0;
  std::string version;    // "3.12.1", "3.15.0a2"
  std::string build;      // "default", "debug", "free-threaded", "free-threaded debug"
  std::string found_by;   // "symbol _PyRuntime in libpython3.12.so.1.0"
  std::string warning;    // e.g. a pre-release read through _Py_DebugOffsets; empty: none
  RemoteAddress runtime;  // _PyRuntime; none before 3.7
  // The word that holds the first PyInterpreterState*: runtime + interpreters_head, or the symbol
  // interp_head.
  RemoteAddress interpreters_head;
  RemoteAddress tstate_current;  // the word that holds the GIL holder's PyThreadState* (<= 3.11); none after
  RemoteAddress
      gil;  // struct _gil_runtime_state in _PyRuntime (3.7-3.11); none: per interpreter, or not known
  RemoteAddress next_func_version;  // the word _Py_next_func_version (3.12); none: not known
};

}  // namespace phlox::python
