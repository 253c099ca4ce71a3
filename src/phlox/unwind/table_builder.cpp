#include "phlox/unwind/table_builder.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phlox/base/byte_reader.h"
#include "phlox/unwind/arch/aarch64.h"
#include "phlox/unwind/arch/x86_64.h"
#include "phlox/unwind/cfi_machine.h"

namespace phlox::unwind {
namespace {

struct RuleHash {
  size_t operator()(const Rule& r) const {
    uint64_t h = static_cast<uint64_t>(r.kind) | static_cast<uint64_t>(r.base) << 8 |
                 static_cast<uint64_t>(r.fp) << 16 | static_cast<uint64_t>(r.ra) << 24 |
                 static_cast<uint64_t>(r.bx) << 32 | uint64_t{static_cast<uint16_t>(r.bx_offset)} << 40;
    for (const int32_t v : {r.cfa_offset, r.inner, r.fp_offset, r.ra_offset}) {
      h = (h ^ static_cast<uint32_t>(v)) * 0x9e3779b97f4a7c15ULL;
      h ^= h >> 29;
    }
    return static_cast<size_t>(h);
  }
};

// What the builder needs for one function.
struct Function {
  Fde fde;
  const FrameSection* section = nullptr;
  const CfiState* initial = nullptr;
};

}  // namespace

class TableBuilder {
 public:
  TableBuilder(uint16_t machine, const DwarfRegisters& registers) : registers_(registers), cfi_(registers) {
    table_.machine_ = machine;
    id_of(Rule{});
  }

  void add(const FrameSection& section) {
    const FrameEntries& entries = read_.emplace_back(read_entries(section, registers_.ra));
    table_.leftovers_.entries += entries.damaged;
    for (const Cie& cie : entries.cies) initial_.emplace(&cie, cfi_.initial(cie, section));
    std::vector<Function> found;
    found.reserve(entries.fdes.size());
    for (const Fde& fde : entries.fdes) found.push_back({fde, &section, &initial_.at(fde.cie)});
    accept(std::move(found));
  }

  UnwindTable finish() {
    if (functions_.empty()) return std::move(table_);
    table_.base_ = ImageAddress(functions_.front().fde.start);
    for (const Function& function : functions_) {
      if (function.fde.end - table_.base_.value >= std::numeric_limits<uint32_t>::max()) {
        ++table_.leftovers_.entries;  // sorted: all further ones are too far away
        break;
      }
      run(function);
    }
    table_.offsets_.shrink_to_fit();
    table_.ids_.shrink_to_fit();
    return std::move(table_);
  }

  // Marks [start, start + size) with this kind if nothing describes it.
  static void mark(UnwindTable& table, ImageAddress start, uint64_t size, RuleKind kind) {
    if (table.offsets_.empty() || start < table.base_) return;
    const uint64_t offset = start - table.base_;
    if (offset + size >= std::numeric_limits<uint32_t>::max() || table.find(start).kind != RuleKind::none)
      return;
    const auto at =
        std::upper_bound(table.offsets_.begin(), table.offsets_.end(), static_cast<uint32_t>(offset));
    const size_t next = static_cast<size_t>(at - table.offsets_.begin());
    // Inside a gap: the previous row is "none", and the next one starts beyond.
    if (next < table.offsets_.size() && table.offsets_[next] < offset + size) return;
    if (table.rules_.size() >= UnwindTable::kMaxRules) return;
    Rule rule;
    rule.kind = kind;
    auto known = std::find(table.rules_.begin(), table.rules_.end(), rule);
    const auto id = static_cast<uint16_t>(known - table.rules_.begin());
    if (known == table.rules_.end()) table.rules_.push_back(rule);
    std::vector<uint32_t> offsets = {static_cast<uint32_t>(offset)};
    std::vector<uint16_t> ids = {id};
    if (next == table.offsets_.size() || table.offsets_[next] != offset + size) {
      offsets.push_back(static_cast<uint32_t>(offset + size));
      ids.push_back(0);
    }
    size_t index = next;
    if (index > 0 && table.offsets_[index - 1] == offset) {
      table.ids_[index - 1] = id;
      offsets.erase(offsets.begin());
      ids.erase(ids.begin());
    }
    table.offsets_.insert(table.offsets_.begin() + static_cast<ptrdiff_t>(index), offsets.begin(),
                          offsets.end());
    table.ids_.insert(table.ids_.begin() + static_cast<ptrdiff_t>(index), ids.begin(), ids.end());
  }

 private:
  // Keeps what no earlier section covers; functions_ stays sorted and free of overlaps.
  void accept(std::vector<Function> found) {
    std::stable_sort(found.begin(), found.end(),
                     [](const Function& a, const Function& b) { return a.fde.start < b.fde.start; });
    std::vector<Function> joined;
    joined.reserve(functions_.size() + found.size());
    size_t old = 0;
    uint64_t covered = 0;
    for (const Function& function : found) {
      while (old < functions_.size() && functions_[old].fde.start <= function.fde.start) {
        covered = functions_[old].fde.end;
        joined.push_back(functions_[old++]);
      }
      const bool hits_next = old < functions_.size() && functions_[old].fde.start < function.fde.end;
      if (function.fde.start < covered || hits_next) continue;
      covered = function.fde.end;
      joined.push_back(function);
    }
    joined.insert(joined.end(), functions_.begin() + static_cast<ptrdiff_t>(old), functions_.end());
    functions_ = std::move(joined);
  }

  void run(const Function& function) {
    const bool signal = function.fde.cie->signal;
    cfi_.begin(function.fde, *function.section, *function.initial);
    while (cfi_.next()) {
      const Rule rule = rule_of(cfi_.state(), signal, registers_);
      if (rule.kind == RuleKind::none) ++table_.leftovers_.rows;
      put(cfi_.row_start(), id_of(rule));
    }
    put(function.fde.end, 0);
  }

  uint16_t id_of(const Rule& rule) {
    const auto known = ids_.find(rule);
    if (known != ids_.end()) return known->second;
    if (table_.rules_.size() >= UnwindTable::kMaxRules) return 0;
    const auto id = static_cast<uint16_t>(table_.rules_.size());
    table_.rules_.push_back(rule);
    ids_.emplace(rule, id);
    return id;
  }

  void put(uint64_t pc, uint16_t id) {
    const auto offset = static_cast<uint32_t>(pc - table_.base_.value);
    auto& offsets = table_.offsets_;
    auto& ids = table_.ids_;
    if (!offsets.empty() && offsets.back() == offset) {
      offsets.pop_back();
      ids.pop_back();
    }
    if (!ids.empty() && ids.back() == id) return;
    offsets.push_back(offset);
    ids.push_back(id);
  }

  UnwindTable table_;
  DwarfRegisters registers_;
  CfiMachine cfi_;
  std::deque<FrameEntries> read_;                     // at fixed addresses: functions point into them
  std::unordered_map<const Cie*, CfiState> initial_;  // the state after each CIE's own instructions
  std::vector<Function> functions_;
  std::unordered_map<Rule, uint16_t, RuleHash> ids_;
};

UnwindTable build_table(std::span<const FrameSection> sections, uint16_t machine) {
  const auto registers = registers_of(machine);
  if (!registers) return UnwindTable(machine);
  TableBuilder builder(machine, *registers);
  for (const FrameSection& section : sections) builder.add(section);
  return builder.finish();
}

namespace {

// Without section headers (the vdso has them, but some packers drop them): PT_GNU_EH_FRAME points at the
// header, which points at .eh_frame, which ends at its terminator or with its segment.
std::optional<FrameSection> section_of_segments(const elf::ElfFile& file) {
  for (const elf::Segment& s : file.segments()) {
    if (s.type != PT_GNU_EH_FRAME) continue;
    ByteReader in(file.at(s.address, s.file_size));
    FrameSection header{{}, s.address, false, s.address, {}};
    in.skip(1);
    const auto encoding = in.read<uint8_t>();
    in.skip(2);
    const auto frames = in.failed() ? std::nullopt : read_pointer(in, encoding, s.address.value, header);
    if (!frames) return std::nullopt;
    for (const elf::Segment& load : file.segments()) {
      if (load.type != PT_LOAD || *frames < load.address.value ||
          *frames - load.address.value >= load.file_size)
        continue;
      const ImageAddress at(*frames);
      auto bytes = file.at(at, load.file_size - (at - load.address));
      return FrameSection{bytes, at, false, s.address, {}};
    }
  }
  return std::nullopt;
}

void mark_each(std::span<const std::byte> bytes, ImageAddress start, UnwindTable& table,
               std::string_view code) {
  // A search by the first byte, as in std::string_view, stops at every 64-bit instruction.
  for (size_t at = 0; at < bytes.size(); ++at) {
    const void* found = ::memmem(bytes.data() + at, bytes.size() - at, code.data(), code.size());
    if (found == nullptr) break;
    at = static_cast<size_t>(static_cast<const std::byte*>(found) - bytes.data());
    TableBuilder::mark(table, start + at, code.size(), RuleKind::signal);
  }
}

void mark_trampolines(const elf::ElfFile& file, UnwindTable& table, std::string_view code) {
  // musl is a library of less than a megabyte, or is linked into a program.
  constexpr uint64_t kMostCode = uint64_t{64} << 20;
  constexpr uint64_t kPiece = 1 << 20;
  // Pieces overlap, so that none of these is split.
  std::vector<std::byte> piece(kPiece + code.size() - 1);
  uint64_t left = kMostCode;
  for (const elf::Segment& s : file.segments()) {
    if (s.type != PT_LOAD || (s.flags & PF_X) == 0) continue;
    // Copied piece by piece, so that no more of a large library's code is kept.
    for (uint64_t begin = 0; begin < s.file_size && left >= piece.size(); begin += kPiece) {
      const auto bytes = std::span(piece).first(file.copy(s.address + begin, piece));
      if (bytes.size() < code.size()) break;
      left -= bytes.size();
      mark_each(bytes, s.address + begin, table, code);
    }
  }
}

// A program's entry point has no caller; some C runtimes (conda's) do not say so.
void mark_entry(const elf::ElfFile& file, UnwindTable& table) {
  constexpr uint64_t kLongestStart = 48;  // glibc's: 38 bytes; musl's: 22
  if (file.entry()) TableBuilder::mark(table, file.entry(), kLongestStart, RuleKind::end);
}

}  // namespace

UnwindTable build_table(const elf::ElfFile& file) {
  std::vector<FrameSection> sections;
  const elf::Section* header = file.find_section(".eh_frame_hdr");
  const ImageAddress data_base = header == nullptr ? ImageAddress{} : header->address;
  for (const elf::Section& s : file.sections()) {
    if (s.name != ".eh_frame" && s.name != ".debug_frame") continue;
    if ((s.flags & SHF_COMPRESSED) != 0) continue;
    const auto bytes = file.contents(s);
    if (bytes.empty()) continue;
    const FrameSection section{bytes, s.address, s.name == ".debug_frame", data_base, {}};
    sections.insert(section.debug_frame ? sections.end() : sections.begin(), section);
  }
  if (file.find_section(".eh_frame") == nullptr) {
    if (const auto section = section_of_segments(file)) sections.insert(sections.begin(), *section);
  }
  UnwindTable table = build_table(sections, file.machine());
  // musl's trampoline has no CFI: https://git.musl-libc.org/cgit/musl/tree/src/signal/x86_64/restore.s
  if (file.machine() == EM_X86_64) mark_trampolines(file, table, X86_64::kSigreturn);
  if (file.machine() == EM_AARCH64) mark_trampolines(file, table, Aarch64::kSigreturn);
  mark_entry(file, table);
  return table;
}

}  // namespace phlox::unwind
