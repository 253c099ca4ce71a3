// The formats that can be imported, in one list: `phlox import --from NAME`, the recognition of files, and
// the help text follow from it. A new format is one file in this directory and one row in registry.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "phlox/importers/importer.h"

namespace phlox::importers {

struct Format {
  std::string_view name;         // of --from
  std::string_view description;  // one line of --help
  // Whether a file with this beginning is one. `head`: its first 64 KiB, or all of it.
  bool (*recognise)(std::span<const std::byte> head);
  ImportFunction import;
};

// In the order in which they are tried: those that begin with a mark first.
std::span<const Format> formats();
// nullptr: no such format.
const Format* find_format(std::string_view name);
const Format* recognise(Input& input);
// "perf, collapsed": for error messages.
std::string format_names();

}  // namespace phlox::importers
