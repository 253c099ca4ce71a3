// Names of the recorded kernel's functions: of /proc/kallsyms when it is this machine's kernel, else of the
// copy that perf keeps beside its build-ids. Moved by what address randomisation moved the kernel; its
// modules, which that moves otherwise, are named only where nothing moved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/symbols/kernel_symbols.h"

namespace phlox::importers {

class KernelNames {
 public:
  // `text_address`: of _text (or _stext) when it was recorded; `symbol`: which. `build_id`: hex; of a
  // recording that does not tell it this machine's kernel is taken where its `release` and its place are the
  // same.
  void open(std::string_view build_id, std::string_view symbol, uint64_t text_address,
            std::string_view release, const std::vector<std::string>& build_id_dirs);
  // Of another text, for tests.
  void take(std::string text, std::string_view symbol, uint64_t text_address);

  std::optional<std::string_view> find(uint64_t address) const;

 private:
  std::optional<symbols::KernelSymbols> symbols_;
  uint64_t text_ = 0;   // where _text is in the symbols
  uint64_t moved_ = 0;  // recorded address - address in the symbols, of the kernel's own text
};

}  // namespace phlox::importers
