// The name of an address of a module.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/symbols/cython_name.h"

namespace phlox::symbols {

struct NativeName {
  std::string function;    // full, demangled
  std::string short_name;  // for narrow places
  std::string file;        // empty: not known
  int32_t line = 0;
  bool inlined = false;  // into the next one
  CythonPart cython = CythonPart::none;
  // Where the function is declared: the same for all of its addresses. Empty, 0: not known.
  std::string declared_file = {};
  int32_t declared_line = 0;
};

enum class NameSource : uint8_t { none, symbol, plt, debug_info };

struct Naming {
  // Innermost first; never empty: "libfoo.so+0x1234" if nothing is known, with the start of the function if
  // unwind information has it, so that its addresses have one name.
  std::vector<NativeName> levels;
  NameSource source = NameSource::none;
};

}  // namespace phlox::symbols
