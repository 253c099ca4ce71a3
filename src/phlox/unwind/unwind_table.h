// A module's call frame information (.eh_frame, .debug_frame), executed once and stored flat: sorted rows of
// (offset of a pc, number of a rule), each rule once. Looking up a pc is one binary search, which the
// unwinder does for each frame of each sample. Made by table_builder.h, kept in files by table_format.h; a
// finished table never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/unwind/rule.h"

namespace phlox::unwind {

class UnwindTable {
 public:
  // A rule number is 16 bits wide; OpenBLAS has about 1,000.
  static constexpr size_t kMaxRules = 65535;

  // An empty table.
  explicit UnwindTable(uint16_t machine = 0) : machine_(machine) {}

  // The rule that holds at a pc; kind none if no row covers it.
  Rule find(ImageAddress pc) const;
  // The region around a pc without a rule, [first, second); nothing if the pc has a rule.
  std::pair<ImageAddress, ImageAddress> gap(ImageAddress pc) const;

  uint16_t machine() const { return machine_; }  // EM_X86_64, EM_AARCH64
  size_t row_count() const { return offsets_.size(); }
  size_t byte_size() const;
  // Row i holds from row_start(i) to row_start(i + 1).
  ImageAddress row_start(size_t i) const { return base_ + offsets_[i]; }
  const Rule& row_rule(size_t i) const { return rules_[ids_[i]]; }
  // What building had to leave out.
  struct Leftovers {
    size_t entries = 0;  // CIEs and FDEs that are damaged or of an unknown form
    size_t rows = 0;     // rows whose rule we do not follow: kind none
  };
  const Leftovers& leftovers() const { return leftovers_; }

  friend bool operator==(const UnwindTable& a, const UnwindTable& b) {
    return a.machine_ == b.machine_ && a.base_ == b.base_ && a.offsets_ == b.offsets_ && a.ids_ == b.ids_ &&
           a.rules_ == b.rules_;
  }

 private:
  friend class TableBuilder;
  friend std::vector<std::byte> table_bytes(const UnwindTable& table);
  friend std::unique_ptr<UnwindTable> parse_table(std::span<const std::byte> bytes);

  uint16_t machine_ = 0;
  ImageAddress base_;              // offsets count from here
  std::vector<uint32_t> offsets_;  // sorted, strictly
  std::vector<uint16_t> ids_;      // into rules_, one for each offset
  std::vector<Rule> rules_;        // rules_[0] is none
  Leftovers leftovers_;
};

}  // namespace phlox::unwind
