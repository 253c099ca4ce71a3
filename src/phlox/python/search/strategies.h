// The ways to come by an interpreter's address in one module, each a function, the surest first: a symbol, a
// section, the cookie of _Py_DebugOffsets, a scan. What they come by is tried and validated by candidates.h;
// which module is next, and when to give up, is locate()'s.
#pragma once

#include <optional>
#include <span>

#include "phlox/python/interpreter.h"
#include "phlox/python/search/module_search.h"

namespace phlox::python {

struct Strategy {
  const char* name;
  std::optional<Interpreter> (*run)(ModuleSearch&);
};
std::span<const Strategy> strategies();

}  // namespace phlox::python
