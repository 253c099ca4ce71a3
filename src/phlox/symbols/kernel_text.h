// The kernel's own functions by address, from a copy of /proc/kallsyms in a file. Searched in place: its
// lines are sorted by address, so a look-up touches some twenty of 120,000. Functions of modules follow;
// KernelSymbols names those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "phlox/elf/elf_file.h"

namespace phlox::symbols {

class KernelText {
 public:
  // None: there is no such file, or it is larger than any kernel's.
  static std::optional<KernelText> open(const std::string& path);
  // The text must outlive it.
  explicit KernelText(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }
  // As KernelSymbols::find(). The view lives as long as the text.
  std::optional<std::string_view> find(uint64_t address) const;

 private:
  size_t line_after(uint64_t address) const;

  std::optional<elf::FileBytes> file_;
  std::string_view text_;
};

}  // namespace phlox::symbols
