#include "phlox/symbols/symbol_table.h"

#include <elf.h>
#include <lzma.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <unordered_map>

#include "phlox/base/byte_reader.h"

namespace phlox::symbols {
namespace {

constexpr size_t kMostSymbols = 8'000'000;
// A library has some 10,000.
constexpr size_t kMostPltEntries = 1'000'000;
constexpr size_t kLongestPltName = 4096;
constexpr uint64_t kMostMemory = 256 << 20;
// Functions without a size are written in assembly: the longest known ones (ciphers, BLAS) have some 20 kB.
constexpr uint64_t kLongestWithoutSize = 32 << 10;

bool in_code(const elf::ElfFile& image, uint64_t address) {
  for (const elf::Segment& s : image.segments()) {
    if (s.type == PT_LOAD && (s.flags & PF_X) != 0 && address >= s.address.value &&
        address - s.address.value < s.memory_size)
      return true;
  }
  return false;
}

// "read" before "__read" before "__GI___libc_read", glibc's own alias.
uint8_t oddness_of(std::string_view name) {
  if (name.starts_with("__GI_")) return 4;
  return static_cast<uint8_t>(std::min<size_t>(name.find_first_not_of('_'), 3));
}

// A function before a label, a plain name before an odd one, a global one before a local one.
uint8_t rank_of(const elf::Symbol& symbol) {
  return static_cast<uint8_t>((symbol.type == STT_NOTYPE ? 16 : 0) + 2 * oddness_of(symbol.name) +
                              (symbol.binding == STB_LOCAL ? 1 : 0));
}

// The slot of the global offset table that a PLT entry jumps through: jmp *disp(%rip), possibly after endbr64
// and bnd.
uint64_t got_slot_x86_64(std::span<const std::byte> entry, uint64_t address) {
  for (size_t at = 0; at + 6 <= entry.size(); ++at) {
    if (entry[at] != std::byte{0xff} || entry[at + 1] != std::byte{0x25}) continue;
    int32_t displacement = 0;
    std::memcpy(&displacement, entry.data() + at + 2, 4);
    return address + at + 6 + static_cast<uint64_t>(int64_t{displacement});
  }
  return 0;
}

// adrp x16, page; ldr x17, [x16, #offset]
uint64_t got_slot_aarch64(std::span<const std::byte> entry, uint64_t address) {
  for (size_t at = 0; at + 8 <= entry.size(); at += 4) {
    uint32_t adrp = 0, ldr = 0;
    std::memcpy(&adrp, entry.data() + at, 4);
    std::memcpy(&ldr, entry.data() + at + 4, 4);
    if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211) continue;
    uint64_t pages = ((adrp >> 5 & 0x7ffff) << 2) | (adrp >> 29 & 3);
    if ((pages & (1U << 20)) != 0) pages |= ~uint64_t{0} << 21;
    return ((address + at) & ~uint64_t{4095}) + (pages << 12) + ((ldr >> 10 & 0xfff) << 3);
  }
  return 0;
}

}  // namespace

bool plainer_name(std::string_view a, std::string_view b) {
  return oddness_of(a) < oddness_of(b);
}

std::vector<std::byte> mini_debug_data(const elf::ElfFile& file) {
  const elf::Section* section = file.find_section(".gnu_debugdata");
  if (section == nullptr) return {};
  const auto packed = file.contents(*section);
  std::vector<std::byte> out(std::min<uint64_t>(std::max<uint64_t>(packed.size() * 8, 1 << 16), kMostMemory));
  while (true) {
    uint64_t memory = kMostMemory;
    size_t in_at = 0, out_at = 0;
    const lzma_ret result = ::lzma_stream_buffer_decode(
        &memory, 0, nullptr, reinterpret_cast<const uint8_t*>(packed.data()), &in_at, packed.size(),
        reinterpret_cast<uint8_t*>(out.data()), &out_at, out.size());
    if (result == LZMA_OK) {
      out.resize(out_at);
      return out;
    }
    if (result != LZMA_BUF_ERROR || out.size() * 2 > kMostMemory) return {};
    out.resize(out.size() * 2);
  }
}

void SymbolTable::add(const elf::ElfFile& file) {
  for (const elf::Section& section : file.sections()) {
    if ((section.flags & SHF_EXECINSTR) != 0 && section.size <= ~uint64_t{0} - section.address.value)
      sections_.emplace_back(section.address.value, section.address.value + section.size);
  }
  add_symbols(file, file);
  add_plt(file);
  const std::vector<std::byte> mini = mini_debug_data(file);
  if (mini.empty()) return;
  if (const auto inner = elf::ElfFile::parse(mini)) add_symbols(*inner, file);
}

void SymbolTable::add_symbols(const elf::ElfFile& file, const elf::ElfFile& image) {
  file.for_each_symbol([&](const elf::Symbol& s) {
    const bool code = s.type == STT_FUNC || s.type == STT_GNU_IFUNC || s.type == STT_NOTYPE;
    if (code && s.name.front() != '$' && in_code(image, s.address.value))
      put(s.address.value, s.size, s.name, rank_of(s));
    return entries_.size() < kMostSymbols;
  });
}

void SymbolTable::add_plt(const elf::ElfFile& file) {
  // GOT slot -> symbol, for every relocation that fills one.
  std::unordered_map<uint64_t, std::string_view> slots;
  const uint32_t jump = file.machine() == EM_AARCH64 ? R_AARCH64_JUMP_SLOT : R_X86_64_JUMP_SLOT;
  const uint32_t data = file.machine() == EM_AARCH64 ? R_AARCH64_GLOB_DAT : R_X86_64_GLOB_DAT;
  size_t relocations = 0;
  for (const elf::Section& section : file.sections()) {
    if (section.type != SHT_RELA || section.link >= file.sections().size()) continue;
    const elf::Section& symbols = file.sections()[section.link];
    if (symbols.link >= file.sections().size()) continue;
    const auto table = file.contents(symbols);
    const auto strings = file.contents(file.sections()[symbols.link]);
    ByteReader in(file.contents(section));
    while (in.remaining() >= sizeof(Elf64_Rela) && relocations++ < kMostSymbols &&
           slots.size() < kMostPltEntries) {
      const auto relocation = in.read<Elf64_Rela>();
      const uint32_t type = ELF64_R_TYPE(relocation.r_info);
      const uint64_t index = ELF64_R_SYM(relocation.r_info);
      if ((type != jump && type != data) || index >= table.size() / sizeof(Elf64_Sym)) continue;
      Elf64_Sym symbol;
      std::memcpy(&symbol, table.data() + index * sizeof symbol, sizeof symbol);
      if (symbol.st_name >= strings.size()) continue;
      const auto rest = strings.subspan(symbol.st_name);
      ByteReader name(rest.first(std::min(rest.size(), kLongestPltName)));
      const auto text = name.c_string();
      if (!text.empty()) slots.emplace(relocation.r_offset, text);
    }
  }
  size_t entries = 0;
  for (const elf::Section& section : file.sections()) {
    if (section.name.substr(0, 4) != ".plt") continue;
    const auto code = file.contents(section);
    const size_t size = section.name == ".plt.got" && section.entry_size == 8 ? 8 : 16;
    for (size_t at = 0; at + size <= code.size() && entries++ < kMostPltEntries; at += size) {
      const uint64_t address = section.address.value + at;
      const auto entry = code.subspan(at, size);
      const uint64_t slot =
          file.machine() == EM_AARCH64 ? got_slot_aarch64(entry, address) : got_slot_x86_64(entry, address);
      const auto named = slots.find(slot);
      put(address, size,
          named != slots.end() ? std::string(named->second) + "@plt" : "(" + std::string(section.name) + ")",
          32);
    }
  }
}

void SymbolTable::put(uint64_t start, uint64_t size, std::string_view name, uint8_t rank) {
  if (size > ~uint64_t{0} - start || name.empty() || name.size() > kBlock) return;
  if (used_ + name.size() > blocks_.size() * kBlock) {
    used_ = blocks_.size() * kBlock;
    if (used_ > 0xffffffff - kBlock) return;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlock));
  }
  entries_.push_back(
      {start, start + size, static_cast<uint32_t>(used_), static_cast<uint32_t>(name.size()), rank});
  std::memcpy(blocks_.back().get() + used_ % kBlock, name.data(), name.size());
  used_ += name.size();
}

void SymbolTable::settle() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    // A name with a size is better than one without; then the plainer, then the shorter.
    const auto key = [](const Entry& e) {
      return std::tuple(e.start, e.end == e.start, e.rank, e.name_size, e.name);
    };
    return key(a) < key(b);
  });
  const auto end = std::unique(entries_.begin(), entries_.end(),
                               [](const Entry& a, const Entry& b) { return a.start == b.start; });
  entries_.erase(end, entries_.end());
  entries_.shrink_to_fit();
  std::sort(sections_.begin(), sections_.end());
}

bool SymbolTable::may_reach(uint64_t start, uint64_t address) const {
  if (address - start > kLongestWithoutSize) return false;
  const auto behind = std::upper_bound(sections_.begin(), sections_.end(), address,
                                       [](uint64_t value, const auto& s) { return value < s.first; });
  // If the file's section headers were stripped, nothing is known.
  return behind == sections_.begin() || std::prev(behind)->first <= start;
}

SymbolTable::Found SymbolTable::found(const Entry& entry, uint64_t address) const {
  const char* block = blocks_[entry.name / kBlock].get();
  return {{block + entry.name % kBlock, entry.name_size}, address - entry.start, entry.end != entry.start};
}

std::optional<SymbolTable::Found> SymbolTable::find(ImageAddress address) const {
  auto next = std::upper_bound(entries_.begin(), entries_.end(), address.value,
                               [](uint64_t value, const Entry& e) { return value < e.start; });
  std::optional<Found> label;  // without a size
  // A label inside a function ends before the address, or has no size: look a few names back for the one that
  // contains the address.
  for (int back = 0; back < 8 && next != entries_.begin(); ++back) {
    --next;
    if (address.value < next->end) return found(*next, address.value);
    // A label ends no later than the function around it.
    if (label && next->end > address.value - label->offset) label.reset();
    if (back == 0 && next->end == next->start && may_reach(next->start, address.value))
      label = found(*next, address.value);
  }
  return label;
}

}  // namespace phlox::symbols
