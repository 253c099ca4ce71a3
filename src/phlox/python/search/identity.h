// Which Python a module would be: by its name, its symbols, its constants and the text of sys.version in its
// memory. Whether an interpreter is up in it is not checked here.
#pragma once

#include <optional>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/process/maps.h"
#include "phlox/python/layout_table.h"
#include "phlox/python/version.h"

namespace phlox::python {

// None: not known.
std::optional<Version> version_of(const process::LoadedModule& module, memory::RemoteMemory& memory);

// The possible builds, the likelier first.
std::vector<Build> builds_of(const process::LoadedModule& module);

}  // namespace phlox::python
