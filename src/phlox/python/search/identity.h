// Which Python a module is, should it be one: what its name, its symbols, its constants and the text of
// sys.version in its memory tell. Whether an interpreter is up in it is not asked here.
#pragma once

#include <optional>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/layout_table.h"
#include "phlox/python/version.h"
#include "phlox/target/maps.h"

namespace phlox::python {

// None: nothing tells.
std::optional<Version> version_of(const target::LoadedModule& module, memory::RemoteMemory& memory);

// Which builds it may be, the likelier first.
std::vector<Build> builds_of(const target::LoadedModule& module);

}  // namespace phlox::python
