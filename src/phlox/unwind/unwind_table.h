// A module's call frame information (.eh_frame, .debug_frame), executed once and laid out flat: sorted rows
// of (offset of a pc, number of a rule), the rules each once. Looking a pc up is one binary search. Built
// from bytes; opens no process. The bytes are taken for hostile: whatever they say, building ends after time
// and memory in proportion to their size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/elf/elf_file.h"
#include "phlox/unwind/rule.h"

namespace phlox::unwind {

// A section of frame information as it lies in the image.
struct FrameSection {
  std::span<const std::byte> bytes;
  ImageAddress address;      // of its first byte, for pc-relative pointers
  bool debug_frame = false;  // .debug_frame: another form of the CIE pointer
  ImageAddress data_base;    // what data-relative pointers start from (.eh_frame_hdr)
  ImageAddress text_base;
};

class UnwindTable {
 public:
  // Of every section the ELF file has. A file without any gives an empty table.
  static UnwindTable build(const elf::ElfFile& file);
  // Sections in order of preference: a range that an earlier one covers is not taken from a later one.
  static UnwindTable build(std::span<const FrameSection> sections, uint16_t machine);

  // The rule that holds at a pc; kind none where nothing covers it.
  Rule find(ImageAddress pc) const;
  // The region around a pc that no rule is known for, [first, second); nothing when there is one.
  std::pair<ImageAddress, ImageAddress> gap(ImageAddress pc) const;

  uint16_t machine() const { return machine_; }  // EM_X86_64, EM_AARCH64
  size_t row_count() const { return offsets_.size(); }
  size_t byte_size() const;
  // Row i holds from row_start(i) to row_start(i + 1).
  ImageAddress row_start(size_t i) const { return base_ + offsets_[i]; }
  const Rule& row_rule(size_t i) const { return rules_[ids_[i]]; }
  // What could not be taken over while building (see build()).
  struct Leftovers {
    size_t entries = 0;  // CIEs and FDEs that are damaged or of an unknown form
    size_t rows = 0;     // rows whose rule we do not follow: kind none
  };
  const Leftovers& leftovers() const { return leftovers_; }

  // For keeping a table in a file: exactly what parse() takes back.
  std::vector<std::byte> bytes() const;
  // Checks everything; empty when the bytes are not a table of this version.
  static std::unique_ptr<UnwindTable> parse(std::span<const std::byte> bytes);

  friend bool operator==(const UnwindTable& a, const UnwindTable& b) {
    return a.machine_ == b.machine_ && a.base_ == b.base_ && a.offsets_ == b.offsets_ && a.ids_ == b.ids_ &&
           a.rules_ == b.rules_;
  }

 private:
  friend class TableBuilder;
  uint16_t machine_ = 0;
  ImageAddress base_;              // offsets count from here
  std::vector<uint32_t> offsets_;  // sorted, strictly
  std::vector<uint16_t> ids_;      // into rules_, one for each offset
  std::vector<Rule> rules_;        // rules_[0] is none
  Leftovers leftovers_;
};

}  // namespace phlox::unwind
