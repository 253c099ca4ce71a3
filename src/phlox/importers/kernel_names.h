// Names of the recorded kernel's functions. Two texts may tell them: the copy that perf keeps beside its
// build-ids, and /proc/kallsyms when it is this machine's kernel. The kernel's own text is asked of the copy
// first, which is a file (the kernel makes the other line by line: 40 ms); its modules and what is made while
// it runs, of the other one, which knows those that came later. Moved by what address randomisation moved the
// kernel; its modules, which that moves otherwise, are named only where nothing moved. Each text is read when
// it is first asked.
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
  // `text_address`: of _text (or _stext) when it was recorded; `symbol`: which. `build_id`: hex; of a
  // recording that does not tell it this machine's kernel is taken where its `release` and its place are the
  // same. What is said first holds.
  void open(std::string_view build_id, std::string_view symbol, uint64_t text_address,
            std::string_view release, std::vector<std::string> build_id_dirs);
  // Of another text, for tests.
  void take(std::string text, std::string_view symbol, uint64_t text_address);

  // The view lives as long as this.
  std::optional<std::string_view> find(uint64_t address);

 private:
  struct Source {
    std::optional<symbols::KernelText> text;        // names the kernel's own functions
    std::optional<symbols::KernelSymbols> symbols;  // all functions; of a file, when it is asked for modules
    uint64_t moved = 0;  // recorded address - address in the symbols, of the kernel's own text
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
