// The search for the interpreter in one module of a process: what its strategies (strategies.h) know, and
// what they ran into. Made by locate(), for one module after the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/layout_table.h"
#include "phlox/python/version.h"
#include "phlox/target/maps.h"

namespace phlox::python {

struct ModuleSearch {
  const std::vector<target::Mapping>& maps;  // of the whole process
  const target::LoadedModule& module;
  std::optional<Version> version;  // none: only what states its own (3.13+) can be read
  std::vector<Build> builds;       // that may be: most likely first
  memory::RemoteMemory& memory;
  std::string reason = {};       // why the last strategy brought nothing
  std::string unsupported = {};  // a version that no row covers
  bool not_up = false;           // the place was found, but no interpreter is up there yet
  bool place_known = false;      // the file itself says where _PyRuntime or interp_head lies
};

}  // namespace phlox::python
