// The strategies that find an interpreter's address in one module, each a function, the surest first: a
// symbol, a section, the cookie of _Py_DebugOffsets, a scan. candidates.h tries and validates the addresses;
// locate() decides which module is next, and when to give up.
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
