// Names of the recorded kernel's functions. There are two texts: the copy that perf keeps next to its
// build-ids, and /proc/kallsyms if the kernel is this machine's. For the kernel's own functions the copy
// comes first, because it is a file (the kernel makes the other line by line: 40 ms). For modules and code
// made at run time the other comes first, because it has later ones. Addresses are moved by the distance of
// address randomisation. Modules move by other distances, so they are named only if nothing moved. Each text
// is read when it is first needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/symbols/kernel_symbols.h"
#include "phlox/symbols/kernel_text.h"

namespace phlox::importers {

class KernelNames {
 public:
  // `text_address`: of _text (or _stext) when it was recorded; `symbol`: which. `build_id`: hex; if a
  // recording has none, this machine's kernel is used if its `release` and its place are the same. The first
  // call counts.
  void open(std::string_view build_id, std::string_view symbol, uint64_t text_address,
            std::string_view release, std::vector<std::string> build_id_dirs);
  // From another text, for tests.
  void take(std::string text, std::string_view symbol, uint64_t text_address);

  // The view lives as long as this.
  std::optional<std::string_view> find(uint64_t address);

 private:
  struct Source {
    std::optional<symbols::KernelText> text;        // names the kernel's own functions
    std::optional<symbols::KernelSymbols> symbols;  // all functions; of a file, if modules are needed
    uint64_t moved = 0;  // recorded address - address in the symbols, for the kernel's own text
    bool asked = false;
    std::optional<std::string_view> find_own(uint64_t address) const;
    std::optional<std::string_view> find_of_module(uint64_t address);
  };
  std::optional<uint64_t> moved_of(std::string_view text) const;
  std::optional<Source> source_of(std::string text) const;
  Source& kept();
  Source& own();

  std::string build_id_, symbol_, release_;
  std::vector<std::string> dirs_;
  uint64_t text_ = 0;  // as recorded; 0: nothing is known
  Source kept_, own_;
};

}  // namespace phlox::importers
