// Source lines and inlined functions from one file's DWARF, by libdw. Slow (30 us for a new address) and not
// thread-safe: each address is looked up once, after the capture.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/symbols/debug_files.h"

namespace phlox::symbols {

// One function at an address: the innermost inlined one first, the one with its own code last.
struct SourceLevel {
  // Linkage name if there is one (mangled), otherwise the plain name; empty: not known.
  std::string function;
  std::string file;
  int32_t line = 0;  // the line that runs, or the line of the inlined call; 0: not known
  // The declaration of the function; without one in DWARF, where its code begins. Empty, 0: not known.
  std::string declared_file = {};
  int32_t declared_line = 0;
};

class DwarfLines {
 public:
  // `alt_path`: the file of .gnu_debugaltlink; empty: none. nullptr if there is no DWARF that libdw can read.
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
