// Source lines and inlined functions of one file's DWARF, through libdw. Not for hot paths (30 us a new
// address) and not thread-safe: each address is asked for once, after capture.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/symbols/debug_files.h"

namespace phlox::symbols {

// One function at an address: the innermost inlined one first, the one that has code of its own last.
struct SourceLevel {
  std::string function;  // linkage name where there is one (mangled), else the plain name; empty: not said
  std::string file;
  int32_t line = 0;  // that runs, or of the call that was inlined; 0: not known
  // Of the function; where DWARF has no declaration, where its code begins. Empty, 0: not known.
  std::string declared_file = {};
  int32_t declared_line = 0;
};

class DwarfLines {
 public:
  // `alt_path`: the file of .gnu_debugaltlink; empty: none. nullptr when there is no DWARF that libdw can
  // read.
  static std::unique_ptr<DwarfLines> open(const std::string& path, const std::string& alt_path,
                                          const DebugSearch& search = {});
  ~DwarfLines();
  DwarfLines(const DwarfLines&) = delete;
  DwarfLines& operator=(const DwarfLines&) = delete;

  std::vector<SourceLevel> find(ImageAddress address);

 private:
  struct Libdw;
  explicit DwarfLines(std::unique_ptr<Libdw> libdw);
  std::unique_ptr<Libdw> libdw_;
};

}  // namespace phlox::symbols
