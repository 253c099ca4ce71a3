// Names for the addresses of one module, after the capture: from its symbols and its DWARF (its own or a
// separate file's), once for each address. Says what is missing and what would provide it. Opens the module
// and its debug files by path, never a process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/symbols/cython_source.h"
#include "phlox/symbols/debug_files.h"
#include "phlox/symbols/dwarf_lines.h"
#include "phlox/symbols/function_starts.h"
#include "phlox/symbols/name_cache.h"
#include "phlox/symbols/naming.h"
#include "phlox/symbols/symbol_table.h"

namespace phlox::symbols {

// What a reader of the profile can do to see more of this module.
struct MissingNames {
  std::string module;
  std::string build_id;
  bool no_symbols = false;  // addresses without a function
  bool no_lines = false;    // functions without files and lines
  std::string why;          // "no debug information in the file, none found for its build-id", ...
  bool complete = false;    // its debug information is there: nothing would add more
  bool rust = false;
  bool tried_debuginfod = false;
  std::string advice;  // from advise()
};

// A package, a command or a build flag. `package`: the Debian package of the module; empty: not known.
std::string advise(const MissingNames& missing, std::string_view package);

class ModuleNames {
 public:
  // `shown_path`: as the target sees it. `path`: where it can be opened here. A file that cannot be opened
  // gives plain addresses.
  static ModuleNames open(const std::string& path, const std::string& shown_path, const DebugSearch& search);

  const Naming& name(ImageAddress address);
  // Keeps the names in the folder of the search, for the next time.
  void keep();
  const std::string& build_id() const { return build_id_; }
  const std::string& debug_path() const { return debug_path_; }  // empty: none found
  // Call after the names were looked up; nothing if nothing is missing.
  std::vector<MissingNames> missing() const;
  // Call before any name is looked up: what its files lack, functions that are not exported included. Nothing
  // if they lack nothing.
  std::optional<MissingNames> lacks() const;

 private:
  MissingNames missing_names(bool symbols, bool lines) const;
  void load();
  Naming look_up(ImageAddress address);
  NativeName named(std::string_view symbol) const;
  void improve_cython(NativeName& name);
  SourceLine pyx_line(const std::string& file, int32_t line);

  std::string shown_path_, build_id_, debug_path_, trouble_;
  std::string with_lines_;  // the file that has DWARF; empty: none
  DebugSearch search_;
  NameCache cache_;
  bool rust_ = false, tried_debuginfod_ = false;
  bool has_symbol_table_ = false;        // its own, or a debug file's
  std::optional<elf::FileBytes> bytes_;  // of the module
  std::optional<elf::ElfFile> file_;     // in bytes_
  FunctionStarts starts_;                // in bytes_
  bool loaded_ = false;                  // symbols_ and lines_: if the first name is not in the cache
  SymbolTable symbols_;
  std::unique_ptr<DwarfLines> lines_;
  std::unordered_map<uint64_t, Naming> names_;
  std::unordered_map<std::string, CythonSource> sources_;  // of C files; empty: not written by Cython
  size_t without_symbol_ = 0, without_line_ = 0;
};

}  // namespace phlox::symbols
