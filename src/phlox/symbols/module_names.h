// Names for the addresses of one module, after capture: its symbols, its DWARF (its own or a separate
// file's), once an address. Says what is missing and what would bring it. Opens the module and its debug
// files by path, never a process.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/symbols/debug_files.h"
#include "phlox/symbols/dwarf_lines.h"
#include "phlox/symbols/symbol_table.h"

namespace phlox::symbols {

struct NativeName {
  std::string function;    // full, demangled
  std::string short_name;  // for narrow places
  std::string file;        // empty: not known
  int32_t line = 0;
  bool inlined = false;  // into the next one
};

enum class NameSource : uint8_t { none, symbol, plt, debug_info };

struct Naming {
  std::vector<NativeName> levels;  // innermost first; never empty: "libfoo.so+0x1234" where nothing is known
  NameSource source = NameSource::none;
};

// What a reader of the profile would have to do to see more of this module.
struct MissingNames {
  std::string module;
  std::string build_id;
  bool no_symbols = false;  // addresses without a function
  bool no_lines = false;    // functions without files and lines
  std::string why;          // "no debug information in the file, none found for its build-id", ...
  std::string advice;       // a package, a command or a build flag
  bool complete = false;    // its debug information is there: nothing would bring more
};

class ModuleNames {
 public:
  // `shown_path`: as the target sees it. `path`: where it can be opened here. A file that cannot be opened
  // gives plain addresses.
  static ModuleNames open(const std::string& path, const std::string& shown_path, const DebugSearch& search);

  const Naming& name(ImageAddress address);
  const std::string& build_id() const { return build_id_; }
  const std::string& debug_path() const { return debug_path_; }  // empty: none found
  // After the names were asked for; nothing when nothing is missing.
  std::vector<MissingNames> missing() const;

 private:
  Naming look_up(ImageAddress address);
  void improve_cython(NativeName& name);

  std::string shown_path_, build_id_, debug_path_, trouble_;
  bool rust_ = false, tried_debuginfod_ = false;
  SymbolTable symbols_;
  std::unique_ptr<DwarfLines> lines_;
  std::unordered_map<uint64_t, Naming> names_;
  std::unordered_map<std::string, std::string> sources_;  // C files written by Cython, for their comments
  size_t without_symbol_ = 0, without_line_ = 0;
};

// Cython repeats the line of the .pyx file in a comment before the C of it: /* "fast.pyx":12 */. The last
// such comment at or before `line`; empty file: none.
struct SourcePlace {
  std::string file;
  int32_t line = 0;
};
SourcePlace cython_place(std::string_view c_source, int32_t line);

}  // namespace phlox::symbols
