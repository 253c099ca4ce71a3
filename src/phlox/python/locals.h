// The values of a frame's variables, as short texts: for `dump --locals`, outside the hot path. Values are
// shown, not explored: numbers and text as Python writes them, lists, tuples, dicts and sets with their first
// items, containers in these by their length, everything else by its type. They may hold secrets: the caller
// warns about that.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/layout.h"
#include "phlox/python/read_fault.h"

namespace phlox::python {

struct Local {
  std::string name;
  // "None", "42", "'text'", "[1, {2 items}]", "<Thread object>"; "<unreadable>" if it could not be read.
  std::string value;
  bool argument = false;  // else a local variable
};

struct LocalsLimits {
  size_t variables = 100;   // of one frame; the rest is left out
  size_t characters = 100;  // of one text, then "…"
  size_t items = 10;        // of one container, then "… 90 more"
  size_t contents = 300;    // bytes of a container's items, after which no other is begun
};

// The variables of a function's frame that have a value, arguments first. Empty for module and class bodies,
// whose names are in a dict. `frame` and `code`: as the walk found them.
Read<std::vector<Local>> read_locals(const Layout& layout, memory::RemoteMemory& memory, RemoteAddress frame,
                                     RemoteAddress code, const LocalsLimits& limits = {});

// One object as a short text.
std::string describe_object(const Layout& layout, memory::RemoteMemory& memory, RemoteAddress object,
                            const LocalsLimits& limits = {});

}  // namespace phlox::python
