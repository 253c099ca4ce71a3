// An ELF file laid out by a test: only the requested parts, broken where the test breaks them.
//
//   ElfBuilder builder;
//   builder.load(0x1000, data).dynamic_symbols({{"_PyRuntime", 0x1040}});
//   auto bytes = builder.build();
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace phlox::test {

struct ElfSymbol {
  std::string name;
  uint64_t address = 0;
  uint16_t section = 1;  // SHN_UNDEF: only used here, not defined
  uint64_t size = 8;
  uint8_t type = STT_OBJECT;
  uint8_t binding = STB_GLOBAL;
};

class ElfBuilder {
 public:
  Elf64_Ehdr header{};  // build() starts from it and fills in counts and offsets

  ElfBuilder() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    section("", SHT_NULL, 0, {});
  }

  // A PT_LOAD at this address with these bytes; file offset and address are congruent modulo the page size.
  ElfBuilder& load(uint64_t address, std::vector<std::byte> bytes, uint32_t flags = PF_R) {
    return segment(PT_LOAD, address, std::move(bytes), flags);
  }
  ElfBuilder& segment(uint32_t type, uint64_t address, std::vector<std::byte> bytes, uint32_t flags = PF_R) {
    Elf64_Phdr p{};
    p.p_type = type;
    p.p_flags = flags;
    p.p_vaddr = address;
    p.p_filesz = p.p_memsz = bytes.size();
    segments_.push_back({p, std::move(bytes)});
    return *this;
  }
  ElfBuilder& section(const std::string& name, uint32_t type, uint64_t address, std::vector<std::byte> bytes,
                      uint32_t link = 0, uint64_t flags = 0) {
    Elf64_Shdr s{};
    s.sh_flags = flags;
    s.sh_name = static_cast<uint32_t>(names_.size());
    s.sh_type = type;
    s.sh_addr = address;
    s.sh_size = bytes.size();
    s.sh_link = link;
    names_ += name + '\0';
    sections_.push_back({s, std::move(bytes)});
    return *this;
  }
  ElfBuilder& symbols(const std::vector<ElfSymbol>& symbols, uint32_t type = SHT_SYMTAB) {
    std::string strings(1, '\0');
    const auto table = symbol_table(symbols, strings);
    const auto index = static_cast<uint32_t>(sections_.size());
    section(type == SHT_SYMTAB ? ".symtab" : ".dynsym", type, 0, table, index + 1);
    return section(type == SHT_SYMTAB ? ".strtab" : ".dynstr", SHT_STRTAB, 0, bytes_of(strings));
  }
  // Symbols found only through the dynamic segment, as in memory: table, then strings, from `address` on.
  // `relocated`: added to the pointers, as ld.so does.
  ElfBuilder& dynamic_segment(uint64_t address, const std::vector<ElfSymbol>& symbols,
                              uint64_t relocated = 0) {
    std::string strings(1, '\0');
    auto image = symbol_table(symbols, strings);
    const uint64_t strings_at = address + image.size();
    const auto text = bytes_of(strings);
    image.insert(image.end(), text.begin(), text.end());
    while (image.size() % 8 != 0) image.push_back({});
    const uint64_t dynamic_at = address + image.size();
    const Elf64_Dyn entries[] = {{DT_SYMTAB, {address + relocated}},
                                 {DT_STRTAB, {strings_at + relocated}},
                                 {DT_STRSZ, {strings.size()}},
                                 {DT_NULL, {0}}};
    const auto dynamic = std::as_bytes(std::span(entries));
    image.insert(image.end(), dynamic.begin(), dynamic.end());
    load(address, std::move(image));
    return segment(PT_DYNAMIC, dynamic_at, {dynamic.begin(), dynamic.end()});
  }
  ElfBuilder& build_id(const std::vector<uint8_t>& id) {
    Elf64_Nhdr note{4, static_cast<Elf64_Word>(id.size()), NT_GNU_BUILD_ID};
    std::vector<std::byte> bytes(sizeof note);
    std::memcpy(bytes.data(), &note, sizeof note);
    for (const char c : {'G', 'N', 'U', '\0'}) bytes.push_back(static_cast<std::byte>(c));
    for (const uint8_t byte : id) bytes.push_back(static_cast<std::byte>(byte));
    while (bytes.size() % 4 != 0) bytes.push_back({});
    return segment(PT_NOTE, 0x200, std::move(bytes));
  }
  ElfBuilder& without_sections() {
    with_sections_ = false;
    return *this;
  }

  std::vector<std::byte> build() {
    std::vector<std::byte> file(sizeof header + segments_.size() * sizeof(Elf64_Phdr));
    for (auto& [p, bytes] : segments_) {
      // Congruent modulo the page size, as the loader requires.
      while (file.size() % 4096 != p.p_vaddr % 4096) file.push_back({});
      p.p_offset = file.size();
      file.insert(file.end(), bytes.begin(), bytes.end());
    }
    auto sections = sections_;
    if (with_sections_) {
      Elf64_Shdr names{};
      names.sh_type = SHT_STRTAB;
      names.sh_name = static_cast<uint32_t>(names_.size());
      const std::string text = names_ + ".shstrtab" + '\0';
      names.sh_size = text.size();
      sections.push_back({names, bytes_of(text)});
      for (auto& [s, bytes] : sections) {
        s.sh_offset = file.size();
        file.insert(file.end(), bytes.begin(), bytes.end());
      }
      header.e_shoff = file.size();
      header.e_shnum = static_cast<uint16_t>(sections.size());
      header.e_shentsize = sizeof(Elf64_Shdr);
      header.e_shstrndx = static_cast<uint16_t>(sections.size() - 1);
      for (const auto& [s, bytes] : sections) append(file, s);
    }
    header.e_phoff = sizeof header;
    header.e_phnum = static_cast<uint16_t>(segments_.size());
    header.e_phentsize = sizeof(Elf64_Phdr);
    std::memcpy(file.data(), &header, sizeof header);
    for (size_t i = 0; i < segments_.size(); ++i) {
      std::memcpy(file.data() + sizeof header + i * sizeof(Elf64_Phdr), &segments_[i].first,
                  sizeof(Elf64_Phdr));
    }
    return file;
  }

  static std::vector<std::byte> bytes_of(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    return {bytes.begin(), bytes.end()};
  }

 private:
  template <class T>
  static void append(std::vector<std::byte>& to, const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
  static std::vector<std::byte> symbol_table(const std::vector<ElfSymbol>& symbols, std::string& strings) {
    std::vector<std::byte> table(sizeof(Elf64_Sym));
    for (const ElfSymbol& symbol : symbols) {
      Elf64_Sym s{};
      s.st_name = static_cast<uint32_t>(strings.size());
      s.st_info = static_cast<uint8_t>(ELF64_ST_INFO(symbol.binding, symbol.type));
      s.st_shndx = symbol.section;
      s.st_value = symbol.address;
      s.st_size = symbol.size;
      append(table, s);
      strings += symbol.name + '\0';
    }
    return table;
  }

  std::vector<std::pair<Elf64_Phdr, std::vector<std::byte>>> segments_;
  std::vector<std::pair<Elf64_Shdr, std::vector<std::byte>>> sections_;
  std::string names_;
  bool with_sections_ = true;
};

}  // namespace phlox::test
