#include "phlox/elf/elf_file.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "phlox/base/byte_reader.h"

namespace phlox::elf {
namespace {

constexpr size_t kMaxSegments = 4096;
constexpr size_t kMaxSections = 65536;
constexpr size_t kMaxSectionName = 4096;
constexpr size_t kMaxSymbolName = 64 << 10;
// For all symbols of a file: names may overlap, so a small table can have very many long ones.
constexpr size_t kMaxNameBytes = size_t{512} << 20;
constexpr uint64_t kMaxNotes = 4 << 20;
constexpr uint64_t kPage = 4096;

// Whether offset + size is within `limit` bytes.
bool inside(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

// Empty: none, or longer than `longest`.
std::string_view string_at(std::span<const std::byte> table, uint64_t offset, size_t longest) {
  if (offset >= table.size()) return {};
  table = table.subspan(offset);
  ByteReader reader(table.first(std::min(table.size(), longest + 1)));
  return reader.c_string();
}

}  // namespace

std::span<const std::byte> ElfFile::part(uint64_t offset, uint64_t size) const {
  if (file_) return file_->part(offset, size);
  return inside(offset, size, bytes_.size()) ? bytes_.subspan(offset, size) : std::span<const std::byte>();
}

template <class T>
bool ElfFile::read_at(uint64_t offset, T& value) const {
  const auto bytes = part(offset, sizeof(T));
  if (bytes.size() != sizeof(T)) return false;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return true;
}

std::span<const std::byte> ElfFile::bytes() const {
  return file_ ? file_->bytes() : bytes_;
}

Result<ElfFile> ElfFile::parse(std::span<const std::byte> bytes, uint64_t loaded_at) {
  ElfFile file;
  file.bytes_ = bytes;
  file.loaded_at_ = loaded_at;
  return parse(std::move(file));
}

Result<ElfFile> ElfFile::parse(const FileBytes& bytes, uint64_t loaded_at) {
  ElfFile file;
  file.file_ = bytes;
  file.loaded_at_ = loaded_at;
  return parse(std::move(file));
}

Result<ElfFile> ElfFile::parse(ElfFile file) {
  Elf64_Ehdr header;
  if (!file.read_at(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return fail(ErrorKind::input, "not an ELF file");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return fail(ErrorKind::input, "a 32-bit ELF file");
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) return fail(ErrorKind::input, "a big-endian ELF file");
  file.type_ = header.e_type;
  file.machine_ = header.e_machine;
  file.entry_ = ImageAddress(header.e_entry);
  const size_t segments = std::min<size_t>(header.e_phnum, kMaxSegments);
  for (size_t i = 0; i < segments; ++i) {
    Elf64_Phdr p;
    const uint64_t at = i * header.e_phentsize;
    if (header.e_phentsize < sizeof p || at > ~header.e_phoff || !file.read_at(header.e_phoff + at, p)) {
      return fail(ErrorKind::input, "program headers lie outside the ELF file");
    }
    file.segments_.push_back(
        {p.p_type, p.p_flags, p.p_offset, ImageAddress(p.p_vaddr), p.p_filesz, p.p_memsz, p.p_align});
  }
  // Section headers are optional: a file without them, or with damaged ones, still has its segments.
  const size_t sections = std::min<size_t>(header.e_shnum, kMaxSections);
  std::vector<uint32_t> names;
  for (size_t i = 0; i < sections; ++i) {
    Elf64_Shdr s;
    const uint64_t at = i * header.e_shentsize;
    if (header.e_shentsize < sizeof s || at > ~header.e_shoff || !file.read_at(header.e_shoff + at, s)) {
      file.sections_.clear();
      break;
    }
    Section section;
    section.type = s.sh_type;
    section.flags = s.sh_flags;
    section.address = ImageAddress(s.sh_addr);
    section.offset = s.sh_offset;
    section.size = s.sh_size;
    section.link = s.sh_link;
    section.entry_size = s.sh_entsize;
    names.push_back(s.sh_name);
    file.sections_.push_back(section);
  }
  if (header.e_shstrndx < file.sections_.size()) {
    const auto table = file.contents(file.sections_[header.e_shstrndx]);
    for (size_t i = 0; i < file.sections_.size(); ++i) {
      file.sections_[i].name = string_at(table, names[i], kMaxSectionName);
    }
  }
  return file;
}

const Section* ElfFile::find_section(std::string_view name) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [&](const Section& s) { return s.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

std::span<const std::byte> ElfFile::contents(const Section& section) const {
  return section.type == SHT_NOBITS ? std::span<const std::byte>() : part(section.offset, section.size);
}

size_t ElfFile::copy(ImageAddress address, std::span<std::byte> into) const {
  for (const Segment& s : segments_) {
    if (s.type != PT_LOAD || address < s.address) continue;
    const uint64_t at = address - s.address;
    if (at >= s.file_size || !inside(s.offset, s.file_size, size_of_file())) continue;
    into = into.first(std::min<uint64_t>(into.size(), s.file_size - at));
    if (file_) return file_->copy(s.offset + at, into) ? into.size() : 0;
    std::memcpy(into.data(), bytes_.data() + s.offset + at, into.size());
    return into.size();
  }
  return 0;
}

std::span<const std::byte> ElfFile::at(ImageAddress address, uint64_t size) const {
  for (const Segment& s : segments_) {
    if (s.type != PT_LOAD || address < s.address) continue;
    const uint64_t into = address - s.address;
    if (!inside(into, size, s.file_size) || !inside(s.offset, s.file_size, size_of_file())) continue;
    return part(s.offset + into, size);
  }
  return {};
}

namespace {

// Visits the defined, named symbols of a table until visit(symbol) returns false; then returns false.
template <class Visit>
bool visit_defined(std::span<const std::byte> table, Visit&& visit) {
  for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym s;
    std::memcpy(&s, table.data() + at, sizeof s);
    if (s.st_shndx != SHN_UNDEF && s.st_name != 0 && !visit(s)) return false;
  }
  return true;
}

Symbol symbol_of(const Elf64_Sym& s, std::string_view name) {
  return {name, ImageAddress(s.st_value), s.st_size, static_cast<uint8_t>(ELF64_ST_TYPE(s.st_info)),
          static_cast<uint8_t>(ELF64_ST_BIND(s.st_info))};
}

}  // namespace

template <class Visit>
void ElfFile::for_each_symbol_table(Visit&& visit) const {
  bool any = false;
  size_t left = kMostSymbols * sizeof(Elf64_Sym);
  for (const Section& section : sections_) {
    if (section.type != SHT_SYMTAB && section.type != SHT_DYNSYM) continue;
    if (section.link >= sections_.size()) continue;
    any = true;
    auto table = contents(section);
    table = table.first(std::min(table.size(), left));
    left -= table.size();
    if (!visit(table, contents(sections_[section.link]))) return;
  }
  if (!any) with_dynamic_symbols(visit);
}

template <class Visit>
void ElfFile::with_dynamic_symbols(Visit&& visit) const {
  const auto dynamic =
      std::find_if(segments_.begin(), segments_.end(), [](const Segment& s) { return s.type == PT_DYNAMIC; });
  if (dynamic == segments_.end()) return;
  uint64_t symbols = 0, strings = 0, strings_size = 0;
  // By address, not by file offset: in an image from memory contents may have moved (patchelf), but addresses
  // hold.
  ByteReader entries(at(dynamic->address, dynamic->file_size));
  while (entries.remaining() >= sizeof(Elf64_Dyn)) {
    const auto entry = entries.read<Elf64_Dyn>();
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_SYMTAB) symbols = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) strings_size = entry.d_un.d_val;
  }
  if (symbols == 0 || strings == 0) return;
  // ld.so relocates these two in place: in memory they are addresses of the process. A value within the
  // image's own addresses is ambiguous, and is taken for an image address.
  uint64_t end_of_image = 0;
  for (const Segment& s : segments_) {
    if (s.type != PT_LOAD) continue;
    end_of_image = std::max(end_of_image, s.address.value + s.memory_size);
  }
  if (symbols >= end_of_image) {
    if (loaded_at_ == 0) return;
    symbols -= loaded_at_;
    strings -= loaded_at_;
  }
  // Only a hash table says how many symbols there are; every linker puts the strings right after them.
  if (strings <= symbols) return;
  constexpr uint64_t kMost = kMostSymbols * sizeof(Elf64_Sym);
  visit(at(ImageAddress(symbols), std::min(strings - symbols, kMost)),
        at(ImageAddress(strings), strings_size));
}

void ElfFile::for_each_symbol(const std::function<bool(const Symbol&)>& visit) const {
  size_t names_left = kMaxNameBytes;
  for_each_symbol_table([&](std::span<const std::byte> table, std::span<const std::byte> strings) {
    return visit_defined(table, [&](const Elf64_Sym& s) {
      const Symbol symbol = symbol_of(s, string_at(strings, s.st_name, std::min(kMaxSymbolName, names_left)));
      // A name that does not end within the limit was searched, too.
      names_left -= symbol.name.empty() ? std::min(kMaxSymbolName, names_left) : symbol.name.size();
      return names_left != 0 && (symbol.name.empty() || visit(symbol));
    });
  });
}

std::optional<Symbol> ElfFile::find_symbol(std::string_view name) const {
  std::optional<Symbol> found;
  if (name.empty()) return found;
  // Most names are not found, in tables of tens of thousands: the end of a name rules out most of them.
  const auto is_named = [&](std::span<const std::byte> strings, size_t offset) {
    return offset + name.size() < strings.size() && strings[offset + name.size()] == std::byte{0} &&
           std::memcmp(strings.data() + offset, name.data(), name.size()) == 0;
  };
  for_each_symbol_table([&](std::span<const std::byte> table, std::span<const std::byte> strings) {
    return visit_defined(table, [&](const Elf64_Sym& s) {
      if (is_named(strings, s.st_name)) found = symbol_of(s, string_at(strings, s.st_name, kMaxSymbolName));
      return !found;
    });
  });
  return found;
}

std::optional<ElfFile::DynamicSymbol> ElfFile::find_dynamic_symbol(std::string_view name) const {
  // A linked file has one.
  const auto section = std::find_if(sections_.begin(), sections_.end(),
                                    [](const Section& one) { return one.type == SHT_DYNSYM; });
  if (name.empty() || section == sections_.end() || section->link >= sections_.size()) return {};
  auto table = contents(*section);
  table = table.first(std::min(table.size(), kMostSymbols * sizeof(Elf64_Sym)));
  const auto strings = contents(sections_[section->link]);
  for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym s;
    std::memcpy(&s, table.data() + at, sizeof s);
    if (s.st_shndx == SHN_UNDEF || string_at(strings, s.st_name, name.size() + 1) != name) continue;
    return DynamicSymbol{static_cast<uint32_t>(at / sizeof s),
                         symbol_of(s, string_at(strings, s.st_name, kMaxSymbolName))};
  }
  return {};
}

void ElfFile::for_each_relocation(const std::function<bool(const Relocation&)>& visit) const {
  size_t left = kMostSymbols;
  for (const Section& section : sections_) {
    if (section.type != SHT_RELA) continue;
    const auto table = contents(section);
    for (size_t at = 0; at + sizeof(Elf64_Rela) <= table.size() && left > 0;
         at += sizeof(Elf64_Rela), --left) {
      Elf64_Rela r;
      std::memcpy(&r, table.data() + at, sizeof r);
      if (!visit({ImageAddress(r.r_offset), static_cast<uint32_t>(ELF64_R_TYPE(r.r_info)),
                  static_cast<uint32_t>(ELF64_R_SYM(r.r_info)), r.r_addend}))
        return;
    }
  }
}

namespace {

std::string build_id_in(std::span<const std::byte> bytes) {
  ByteReader notes(bytes);
  while (notes.remaining() >= sizeof(Elf64_Nhdr)) {
    const auto note = notes.read<Elf64_Nhdr>();
    const auto name = notes.bytes((note.n_namesz + 3ULL) & ~3ULL);
    const auto description = notes.bytes((note.n_descsz + 3ULL) & ~3ULL);
    if (notes.failed()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name.data(), "GNU", 4) == 0) {
      std::string id;
      for (const std::byte b : description.first(std::min<size_t>(note.n_descsz, 64))) {
        id += fmt::format("{:02x}", std::to_integer<unsigned>(b));
      }
      return id;
    }
  }
  return {};
}

}  // namespace

std::string ElfFile::build_id() const {
  uint64_t left = kMaxNotes;
  const auto id_in = [&](uint64_t offset, uint64_t size) {
    if (size > left) return std::string();
    left -= size;
    return build_id_in(part(offset, size));
  };
  for (const Segment& segment : segments_) {
    if (segment.type != PT_NOTE) continue;
    if (std::string id = id_in(segment.offset, segment.file_size); !id.empty()) return id;
  }
  // A dwz file has no segments.
  for (const Section& section : sections_) {
    if (section.type != SHT_NOTE) continue;
    if (std::string id = id_in(section.offset, section.size); !id.empty()) return id;
  }
  return {};
}

ImageAddress ElfFile::first_load() const {
  for (const Segment& s : segments_) {
    if (s.type == PT_LOAD) return ImageAddress((s.address.value - s.offset) & ~(kPage - 1));
  }
  return {};
}

}  // namespace phlox::elf
