// Parses ELF files: segments, sections, symbols, build-id. Works on bytes (of a file, file_bytes.h, or of a
// test's array), opens no process. Every offset is checked against the bytes; counts are capped. Only 64-bit
// little-endian files; others are rejected by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/base/result.h"
#include "phlox/elf/file_bytes.h"

namespace phlox::elf {

struct Segment {
  uint32_t type = 0;  // PT_*
  uint32_t flags = 0;
  uint64_t offset = 0;
  ImageAddress address;
  uint64_t file_size = 0;
  uint64_t memory_size = 0;
  uint64_t alignment = 0;  // 0 and 1: none
};

struct Section {
  std::string_view name;
  uint32_t type = 0;  // SHT_*
  uint64_t flags = 0;
  ImageAddress address;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t link = 0;
  uint64_t entry_size = 0;
};

struct Symbol {
  std::string_view name;
  ImageAddress address;
  uint64_t size = 0;
  uint8_t type = 0;     // STT_*
  uint8_t binding = 0;  // STB_*
};

// An entry of a RELA table, for the dynamic linker.
struct Relocation {
  ImageAddress where;
  uint32_t type = 0;    // R_X86_64_*, R_AARCH64_*
  uint32_t symbol = 0;  // number in .dynsym; 0: none
  int64_t addend = 0;
};

class ElfFile {
 public:
  // PyTorch's largest library has some 2 million.
  static constexpr size_t kMostSymbols = 10'000'000;

  // The bytes must outlive the ElfFile. `loaded_at`: for an image copied from memory, its address there.
  static Result<ElfFile> parse(std::span<const std::byte> bytes, uint64_t loaded_at = 0);

  // The same for a file. The ElfFile reads the parts that are requested, and keeps the file.
  static Result<ElfFile> parse(const FileBytes& bytes, uint64_t loaded_at = 0);

  // All bytes of the file, as far as FileBytes::bytes() allows.
  std::span<const std::byte> bytes() const;
  uint16_t type() const { return type_; }        // ET_EXEC, ET_DYN, ...
  uint16_t machine() const { return machine_; }  // EM_X86_64, EM_AARCH64, ...
  // The entry point of a program; libraries have any value.
  ImageAddress entry() const { return entry_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Section>& sections() const { return sections_; }
  const Section* find_section(std::string_view name) const;
  // The file's bytes of a section; empty for SHT_NOBITS or a section outside the file.
  std::span<const std::byte> contents(const Section& section) const;
  // The file's bytes at an image address, as far as they are in the file.
  std::span<const std::byte> at(ImageAddress address, uint64_t size) const;

  // Copies up to `size` bytes from an image address on: for a search, which need not keep them. Returns how
  // many there are; 0: the address is in no segment's file part.
  size_t copy(ImageAddress address, std::span<std::byte> into) const;

  // Defined symbols of .symtab and .dynsym, in file order, until the visitor returns false. Reads at most
  // kMostSymbols entries of all tables together. Without section headers (an image copied from memory, a file
  // stripped of them) the dynamic segment leads to the dynamic ones.
  void for_each_symbol(const std::function<bool(const Symbol&)>& visit) const;
  std::optional<Symbol> find_symbol(std::string_view name) const;
  // Of .dynsym alone, with its number there. Needs section headers.
  struct DynamicSymbol {
    uint32_t number = 0;
    Symbol symbol;
  };
  std::optional<DynamicSymbol> find_dynamic_symbol(std::string_view name) const;
  // Entries of all RELA tables, until the visitor returns false; at most kMostSymbols. Needs section headers.
  void for_each_relocation(const std::function<bool(const Relocation&)>& visit) const;
  bool has_symbol_table() const { return find_section(".symtab") != nullptr; }

  // From the note NT_GNU_BUILD_ID, lower-case hex; empty: none.
  std::string build_id() const;
  // The image address of the first PT_LOAD, rounded down to a page: the start of the mapping at file offset
  // 0.
  ImageAddress first_load() const;

 private:
  ElfFile() = default;
  static Result<ElfFile> parse(ElfFile file);
  uint64_t size_of_file() const { return file_ ? file_->size() : bytes_.size(); }
  // Empty: it is outside the file, or larger than FileBytes allows.
  std::span<const std::byte> part(uint64_t offset, uint64_t size) const;
  template <class T>
  bool read_at(uint64_t offset, T& value) const;
  // Calls visit(table of Elf64_Sym, its strings) for every symbol table until it returns false.
  template <class Visit>
  void for_each_symbol_table(Visit&& visit) const;
  template <class Visit>
  void with_dynamic_symbols(Visit&& visit) const;

  std::optional<FileBytes> file_;  // none: bytes_
  std::span<const std::byte> bytes_;
  uint16_t type_ = 0;
  uint16_t machine_ = 0;
  ImageAddress entry_;
  uint64_t loaded_at_ = 0;
  std::vector<Segment> segments_;
  std::vector<Section> sections_;
};

}  // namespace phlox::elf
