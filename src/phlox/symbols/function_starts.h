// The starts of functions by a file's unwind information (.eh_frame_hdr), which remains when the symbols are
// stripped. Searched in place, nothing is built. The bytes are hostile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "phlox/elf/elf_file.h"

namespace phlox::symbols {

class FunctionStarts {
 public:
  FunctionStarts() = default;
  // The bytes of the file must outlive it. A file without such a table, or with one of an unusual form, gives
  // no starts.
  explicit FunctionStarts(elf::ElfFile file);

  // The start of the function that contains the address. A part that the compiler moved away (".cold") is a
  // function of its own.
  std::optional<ImageAddress> find(ImageAddress address) const;
  size_t size() const { return count_; }

 private:
  uint64_t start_of(size_t i) const;
  std::optional<uint64_t> end_of(size_t i) const;

  std::optional<elf::ElfFile> file_;
  uint64_t header_ = 0;               // image address of .eh_frame_hdr
  std::span<const std::byte> table_;  // rows of two sdata4, relative to it: the start, the FDE
  size_t count_ = 0;
};

}  // namespace phlox::symbols
