// The search for the interpreter in one module of a process: the input of its strategies (strategies.h), and
// their results. Made by locate(), for one module after the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/process/maps.h"
#include "phlox/python/layout_table.h"
#include "phlox/python/version.h"

namespace phlox::python {

struct ModuleSearch {
  const std::vector<process::Mapping>& maps;  // of the whole process
  const process::LoadedModule& module;
  std::optional<Version> version;  // none: only one that states its own (3.13+) can be read
  std::vector<Build> builds;       // the possible ones: most likely first
  memory::RemoteMemory& memory;
  std::string reason = {};       // why the last strategy failed
  std::string unsupported = {};  // a version without a row
  bool not_up = false;           // the place was found, but no interpreter is up there yet
  bool place_known = false;      // the file itself has the address of _PyRuntime or interp_head
};

}  // namespace phlox::python
