// Candidates: an address that may be an interpreter's, tried with each row of the table that may fit. None is
// used before it is validated (validation.h). The strategies find the addresses (strategies.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/python/interpreter.h"
#include "phlox/python/search/module_search.h"

namespace phlox::python {

// Which rows may fit; their fields are enough for a scan.
std::vector<const Layout*> rows_of(const ModuleSearch& search);

// Each takes an address and returns the interpreter there, or none; the search then has the reason, and
// whether the interpreter is not up or its version has no row. `how`: the source of the address, for
// found_by.

// _PyRuntime may be at `runtime`.
std::optional<Interpreter> accept_runtime(ModuleSearch& search, RemoteAddress runtime,
                                          const std::string& how);
// interp_head and _PyThreadState_Current of 2.7 and 3.6.
std::optional<Interpreter> accept_head(ModuleSearch& search, RemoteAddress head, const std::string& how);

// All addresses, in words.
std::string places_of(const Interpreter& candidate);

}  // namespace phlox::python
