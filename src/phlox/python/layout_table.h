// The version table: one row for each version and build, read from that version's headers by tools/layouts.
// Only this file knows the meaning of a version number; all other code asks a Layout for a field or a trait.
#pragma once

#include <cstdint>
#include <span>

#include "phlox/python/layout.h"

namespace phlox::python {

// Configure options that move fields.
struct Build {
  bool debug = false;          // --with-pydebug
  bool free_threaded = false;  // --disable-gil
  friend bool operator==(Build, Build) = default;
};

// "default", "debug", "free-threaded", "free-threaded debug".
const char* name_of(Build build);

// Every row; old versions first, and for one version the default build first.
std::span<const Layout> layouts();

// nullptr: there is no such row.
const Layout* find_layout(uint8_t major, uint8_t minor, Build build = {});

// The row that is used if the version is newer than the table and states its own offsets (_Py_DebugOffsets):
// the newest of this build.
const Layout* newest_layout(Build build = {});

}  // namespace phlox::python
