// What an ELF file says: segments, sections, symbols, build-id. Works on bytes (a mapped file or a test's
// array), opens no process. Every offset is checked against the bytes; counts are capped. Only 64-bit
// little-endian files; others are named.
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

namespace phlox::elf {

struct Segment {
  uint32_t type = 0;  // PT_*
  uint32_t flags = 0;
  uint64_t offset = 0;
  ImageAddress address;
  uint64_t file_size = 0;
  uint64_t memory_size = 0;
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

class ElfFile {
 public:
  // The bytes must outlive the ElfFile. `loaded_at`: of an image copied out of memory, where it lies there.
  static Result<ElfFile> parse(std::span<const std::byte> bytes, uint64_t loaded_at = 0);

  std::span<const std::byte> bytes() const { return bytes_; }
  uint16_t type() const { return type_; }        // ET_EXEC, ET_DYN, ...
  uint16_t machine() const { return machine_; }  // EM_X86_64, EM_AARCH64, ...
  // Where a program starts; libraries have anything there.
  ImageAddress entry() const { return entry_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Section>& sections() const { return sections_; }
  const Section* find_section(std::string_view name) const;
  // The file's bytes of a section; empty for SHT_NOBITS or one that lies outside the file.
  std::span<const std::byte> contents(const Section& section) const;
  // The file's bytes at an image address, as far as they are in the file.
  std::span<const std::byte> at(ImageAddress address, uint64_t size) const;

  // Defined symbols of .symtab and .dynsym, in file order, until the visitor says false. Without section
  // headers (an image copied out of memory, a file stripped of them) the dynamic segment leads to the dynamic
  // ones.
  void for_each_symbol(const std::function<bool(const Symbol&)>& visit) const;
  std::optional<Symbol> find_symbol(std::string_view name) const;
  bool has_symbol_table() const { return find_section(".symtab") != nullptr; }

  // Of the note NT_GNU_BUILD_ID, lower-case hex; empty: none.
  std::string build_id() const;
  // The image address of the first PT_LOAD, rounded down to a page: what the mapping at file offset 0 starts
  // with.
  ImageAddress first_load() const;

 private:
  // Calls visit(table of Elf64_Sym, its strings) for every symbol table until it says false.
  template <class Visit>
  void for_each_symbol_table(Visit&& visit) const;
  template <class Visit>
  void with_dynamic_symbols(Visit&& visit) const;

  std::span<const std::byte> bytes_;
  uint16_t type_ = 0;
  uint16_t machine_ = 0;
  ImageAddress entry_;
  uint64_t loaded_at_ = 0;
  std::vector<Segment> segments_;
  std::vector<Section> sections_;
};

// A file's bytes: of a small file read, of others mapped for reading, privately. Programs and libraries are
// replaced by rename, not shrunk in place; a mapped file that is cut short under us would raise SIGBUS, as in
// every debugger.
class FileBytes {
 public:
  static Result<FileBytes> read(int fd, std::string_view name);
  // Bytes that were had in another way.
  static FileBytes own(std::vector<std::byte> bytes);
  FileBytes(FileBytes&&) noexcept;
  FileBytes& operator=(FileBytes&&) noexcept;
  ~FileBytes();
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  FileBytes() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::vector<std::byte> owned_;  // where data_ points, when no file is mapped
};

}  // namespace phlox::elf
