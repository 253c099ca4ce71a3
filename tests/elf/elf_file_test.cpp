#include "phlox/elf/elf_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <random>

#include "phlox/base/descriptor.h"

#include "support/elf_builder.h"

namespace phlox::elf {
namespace {

using test::ElfBuilder;

std::vector<std::byte> filled(size_t size, uint8_t value = 7) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

TEST(ElfFileTest, says_segments_sections_and_symbols) {
  const auto bytes = ElfBuilder()
                         .load(0x1000, filled(64))
                         .section(".PyRuntime", SHT_PROGBITS, 0x5000, filled(16, 9))
                         .symbols({{"used_elsewhere", 0, SHN_UNDEF}, {"_PyRuntime", 0x5000}})
                         .symbols({{"Py_Version", 0x1010}}, SHT_DYNSYM)
                         .build();
  const auto file = ElfFile::parse(bytes);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_EQ(file->segments().size(), 1u);
  EXPECT_EQ(file->segments()[0].address, ImageAddress(0x1000));
  ASSERT_NE(file->find_section(".PyRuntime"), nullptr);
  EXPECT_EQ(file->contents(*file->find_section(".PyRuntime"))[0], std::byte{9});
  EXPECT_EQ(file->find_symbol("_PyRuntime")->address, ImageAddress(0x5000));
  EXPECT_EQ(file->find_symbol("Py_Version")->address, ImageAddress(0x1010));
  EXPECT_FALSE(file->find_symbol("used_elsewhere"));
  EXPECT_TRUE(file->has_symbol_table());
  EXPECT_EQ(file->at(ImageAddress(0x1000), 64).size(), 64u);
  EXPECT_TRUE(file->at(ImageAddress(0x1000), 65).empty());
  EXPECT_TRUE(file->at(ImageAddress(0xfff), 1).empty());
}

TEST(ElfFileTest, build_id_is_read_from_the_note) {
  const auto bytes = ElfBuilder().build_id({0xde, 0xad, 0x01}).build();
  EXPECT_EQ(ElfFile::parse(bytes)->build_id(), "dead01");
}

TEST(ElfFileTest, without_section_headers_the_dynamic_segment_leads_to_symbols) {
  const auto bytes =
      ElfBuilder().dynamic_segment(0x2000, {{"_PyRuntime", 0x9000}}).without_sections().build();
  const auto file = ElfFile::parse(bytes);
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE(file->find_symbol("_PyRuntime").has_value());
  EXPECT_EQ(file->find_symbol("_PyRuntime")->address, ImageAddress(0x9000));
}

TEST(ElfFileTest, an_image_out_of_memory_has_relocated_pointers_in_its_dynamic_segment) {
  constexpr uint64_t kBase = 0x7f0012340000;
  const auto bytes =
      ElfBuilder().dynamic_segment(0x2000, {{"_PyRuntime", 0x9000}}, kBase).without_sections().build();
  EXPECT_FALSE(ElfFile::parse(bytes)->find_symbol("_PyRuntime"));
  const auto file = ElfFile::parse(bytes, kBase);
  ASSERT_TRUE(file->find_symbol("_PyRuntime").has_value());
  EXPECT_EQ(file->find_symbol("_PyRuntime")->address, ImageAddress(0x9000));
}

TEST(ElfFileTest, what_cannot_be_read_is_named) {
  ElfBuilder narrow, big;
  narrow.header.e_ident[EI_CLASS] = ELFCLASS32;
  big.header.e_ident[EI_DATA] = ELFDATA2MSB;
  EXPECT_NE(ElfFile::parse(narrow.build()).error().message.find("32-bit"), std::string::npos);
  EXPECT_NE(ElfFile::parse(big.build()).error().message.find("big-endian"), std::string::npos);
  EXPECT_EQ(ElfFile::parse(filled(3)).error().kind, ErrorKind::input);
  EXPECT_EQ(ElfFile::parse(std::span<const std::byte>()).error().kind, ErrorKind::input);
}

TEST(ElfFileTest, program_headers_beyond_the_file_are_an_error) {
  auto bytes = ElfBuilder().load(0x1000, filled(8)).build();
  auto* header = reinterpret_cast<Elf64_Ehdr*>(bytes.data());
  header->e_phoff = ~uint64_t{0} - 8;
  EXPECT_FALSE(ElfFile::parse(bytes).has_value());
}

TEST(ElfFileTest, section_headers_beyond_the_file_are_as_if_stripped) {
  auto bytes = ElfBuilder().load(0x1000, filled(8)).symbols({{"f", 1}}).build();
  reinterpret_cast<Elf64_Ehdr*>(bytes.data())->e_shoff = bytes.size() - 10;
  const auto file = ElfFile::parse(bytes);
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->sections().empty());
}

// Any damage: an answer or an error, never a read outside the bytes (the address sanitizer watches).
TEST(ElfFileTest, damaged_files_are_survived) {
  const auto whole = ElfBuilder()
                         .dynamic_segment(0x2000, {{"_PyRuntime", 0x9000}, {"Py_Version", 0x9010}})
                         .build_id({1, 2, 3, 4})
                         .symbols({{"a", 1}, {"b", 2}})
                         .symbols({{"c", 3}}, SHT_DYNSYM)
                         .build();
  std::mt19937 random(20261121);
  const auto any = [&](size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random); };
  for (int round = 0; round < 20000; ++round) {
    auto bytes = whole;
    if (round % 4 == 0) bytes.resize(any(bytes.size()));
    for (size_t k = any(6); k > 0 && !bytes.empty(); --k) {
      // Mostly where the structures are, not in the padding.
      const size_t at = any(2) != 0 ? any(std::min<size_t>(bytes.size(), 300))
                                    : bytes.size() - 1 - any(std::min<size_t>(bytes.size(), 900));
      bytes[at] = static_cast<std::byte>(any(3) == 0 ? 255 : any(256));
    }
    const auto file = ElfFile::parse(bytes, round % 3 == 0 ? 0x7f0000000000 : 0);
    if (!file) continue;
    size_t seen = 0;
    file->for_each_symbol([&](const Symbol& s) { return seen += s.name.size(), true; });
    for (const Section& s : file->sections()) seen += file->contents(s).size() + s.name.size();
    seen += file->build_id().size() + file->at(ImageAddress(0x2000), 100).size();
    EXPECT_LT(seen, size_t{1} << 30);
  }
}

// A header may name one table ever so often.
TEST(ElfFileTest, symbols_of_overlapping_tables_are_capped_together) {
  auto bytes = ElfBuilder().symbols(std::vector<test::ElfSymbol>(1000, {"f", 0x1000})).build();
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(20'000);
  std::memcpy(sections.data(), bytes.data() + header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
  const Elf64_Shdr table = sections[1];
  ASSERT_EQ(table.sh_type, uint32_t{SHT_SYMTAB});
  std::fill(sections.begin() + header.e_shnum, sections.end(), table);
  header.e_shoff = bytes.size();
  header.e_shnum = static_cast<uint16_t>(sections.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  const auto more = std::as_bytes(std::span(sections));
  bytes.insert(bytes.end(), more.begin(), more.end());
  const auto file = ElfFile::parse(bytes);
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(file->sections().size(), 20'000u);
  size_t seen = 0;
  file->for_each_symbol([&](const Symbol&) { return ++seen > 0; });
  EXPECT_GE(seen, ElfFile::kMostSymbols / 100 * 99);
  EXPECT_LE(seen, ElfFile::kMostSymbols);
}

// Names may overlap: a table of a megabyte has gigabytes of names.
TEST(ElfFileTest, names_that_overlap_are_capped_together) {
  const auto bytes = ElfBuilder()
                         .symbols({{std::string(60'000, 'f'), 0x1000}})
                         .symbols({{std::string(100'000, 'g'), 0x1000}})
                         .build();
  auto file = ElfFile::parse(bytes);
  ASSERT_TRUE(file.has_value());
  size_t seen = 0;
  file->for_each_symbol([&](const Symbol& s) { return (seen += s.name.size()) > 0; });
  EXPECT_EQ(seen, 60'000u) << "a name of 100,000 bytes is none";

  auto many = ElfBuilder().symbols(std::vector<test::ElfSymbol>(20'000, {"f", 0x1000})).build();
  file = ElfFile::parse(many);
  ASSERT_TRUE(file.has_value());
  const Section& table = *file->find_section(".symtab");
  const uint64_t strings_at = many.size();
  for (size_t i = 0; i < table.size / sizeof(Elf64_Sym); ++i) {
    const Elf64_Word one = 1;
    std::memcpy(many.data() + table.offset + i * sizeof(Elf64_Sym), &one, sizeof one);
  }
  Elf64_Ehdr header;
  std::memcpy(&header, many.data(), sizeof header);
  Elf64_Shdr strings;
  const uint64_t strings_header = header.e_shoff + table.link * sizeof strings;
  std::memcpy(&strings, many.data() + strings_header, sizeof strings);
  strings.sh_offset = strings_at;
  strings.sh_size = 60'002;
  std::memcpy(many.data() + strings_header, &strings, sizeof strings);
  many.insert(many.end(), 60'001, std::byte('f'));
  many.push_back({});
  file = ElfFile::parse(many);
  seen = 0;
  file->for_each_symbol([&](const Symbol& s) { return (seen += s.name.size()) > 0; });
  EXPECT_GT(seen, size_t{400} << 20);
  EXPECT_LE(seen, size_t{512} << 20);
}

TEST(ElfFileTest, a_part_of_a_segment_is_copied_for_a_search) {
  const auto bytes = ElfBuilder().load(0x1000, filled(64)).build();
  const auto file = ElfFile::parse(bytes);
  ASSERT_TRUE(file.has_value());
  std::byte into[48];
  EXPECT_EQ(file->copy(ImageAddress(0x1000), into), 48u);
  EXPECT_EQ(into[47], std::byte{7});
  EXPECT_EQ(file->copy(ImageAddress(0x1020), into), 32u);
  EXPECT_EQ(file->copy(ImageAddress(0x1040), into), 0u);
}

// A C library has thread-local variables, and many relocations.
TEST(ElfFileTest, thread_local_variables_and_relocations_of_a_library_are_found) {
  Dl_info library{};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(&::gnu_get_libc_version), &library), 0);
  const Descriptor file(::open(library.dli_fname, O_RDONLY | O_CLOEXEC));
  const auto bytes = FileBytes::read(file.get(), library.dli_fname);
  ASSERT_TRUE(bytes.has_value());
  const auto elf = ElfFile::parse(*bytes);
  ASSERT_TRUE(elf.has_value());
  const auto error = elf->find_dynamic_symbol("errno");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->symbol.type, STT_TLS);
  EXPECT_GT(error->number, 0u);
  EXPECT_FALSE(elf->find_dynamic_symbol("no_such_variable"));
  size_t all = 0, some = 0;
  elf->for_each_relocation([&](const Relocation& one) { return one.where.value != 0 && ++all > 0; });
  elf->for_each_relocation([&](const Relocation&) { return ++some < 2; });
  EXPECT_GT(all, 100u);
  EXPECT_EQ(some, 2u);
}

}  // namespace
}  // namespace phlox::elf
