#include "phlox/symbols/symbol_table.h"

#include <gtest/gtest.h>

#include "support/elf_builder.h"

namespace phlox::symbols {
namespace {

using test::ElfBuilder;
using test::ElfSymbol;

constexpr uint64_t kCode = 0x1000;

ElfSymbol function(const std::string& name, uint64_t address, uint64_t size, uint8_t binding = STB_GLOBAL) {
  return {name, address, 1, size, STT_FUNC, binding};
}
ElfSymbol label(const std::string& name, uint64_t address) {
  return {name, address, 1, 0, STT_NOTYPE, STB_LOCAL};
}

class Symbols : public testing::Test {
 protected:
  // One page of code at kCode, and more of it in the section's header than in the file.
  void build(const std::vector<ElfSymbol>& symbols) {
    builder_.load(kCode, std::vector<std::byte>(0x1000), PF_R | PF_X);
    builder_.section(".text", SHT_NOBITS, kCode, {}, 0, SHF_ALLOC | SHF_EXECINSTR);
    builder_.symbols(symbols);
    settle();
  }
  void settle() {
    bytes_ = builder_.build();
    const auto file = elf::ElfFile::parse(bytes_);
    ASSERT_TRUE(file) << file.error().message;
    table_.add(*file);
    table_.settle();
  }
  // "name+offset", or "" if there is none.
  std::string at(uint64_t address) const {
    const auto found = table_.find(ImageAddress(address));
    return found ? std::string(found->name) + "+" + std::to_string(found->offset) : "";
  }

  ElfBuilder builder_;
  std::vector<std::byte> bytes_;
  SymbolTable table_;
};

TEST_F(Symbols, a_function_has_the_addresses_up_to_its_end) {
  build({function("first", kCode, 16), function("second", kCode + 32, 16)});
  EXPECT_EQ(at(kCode - 1), "");
  EXPECT_EQ(at(kCode), "first+0");
  EXPECT_EQ(at(kCode + 15), "first+15");
  EXPECT_EQ(at(kCode + 16), "") << "between two functions";
  EXPECT_EQ(at(kCode + 32), "second+0");
  EXPECT_EQ(at(~uint64_t{0}), "");
}

TEST_F(Symbols, of_several_names_the_usual_one_is_taken) {
  build({function("__GI___libc_read", kCode, 16), function("__read", kCode, 16), function("read", kCode, 16),
         function("other_name", kCode + 16, 16, STB_LOCAL), function("of_all", kCode + 16, 16)});
  EXPECT_EQ(table_.size(), 2U);
  EXPECT_EQ(at(kCode + 1), "read+1");
  EXPECT_EQ(at(kCode + 17), "of_all+1") << "the global one";
}

TEST_F(Symbols, a_label_inside_a_function_does_not_hide_it) {
  build({function("loop", kCode, 256), label("inside", kCode + 16), label("again", kCode + 32)});
  EXPECT_EQ(at(kCode + 20), "loop+20");
  EXPECT_EQ(at(kCode + 40), "loop+40");
}

TEST_F(Symbols, a_name_without_a_size_reaches_to_the_next_one_and_says_so) {
  build({{"assembly", kCode + 16, 1, 0, STT_FUNC}, function("next", kCode + 64, 16)});
  EXPECT_EQ(at(kCode + 63), "assembly+47");
  EXPECT_FALSE(table_.find(ImageAddress(kCode + 63))->sized);
  EXPECT_TRUE(table_.find(ImageAddress(kCode + 64))->sized);
}

TEST_F(Symbols, only_names_of_code_are_taken) {
  build({{"variable", kCode, 1, 8, STT_OBJECT},
         function("elsewhere", 0x9000, 16),
         function("$x.mapping", kCode + 8, 16),
         function("code", kCode + 64, 8)});
  EXPECT_EQ(table_.size(), 1U);
  EXPECT_EQ(at(kCode + 64), "code+0");
}

TEST_F(Symbols, a_size_that_overflows_is_no_function) {
  build({function("huge", kCode, ~uint64_t{0}), function("good", kCode + 16, 8)});
  EXPECT_EQ(table_.size(), 1U);
  EXPECT_EQ(at(kCode + 8), "");
}

TEST_F(Symbols, names_fill_more_than_one_block_of_memory) {
  std::vector<ElfSymbol> many;
  const auto name = [](uint64_t i) { return std::to_string(i) + std::string(5000, 'x'); };
  for (uint64_t i = 0; i < 500; ++i) many.push_back(function(name(i), kCode + 8 * i, 8));
  build(many);
  for (uint64_t i = 0; i < many.size(); ++i) ASSERT_EQ(at(kCode + 8 * i), name(i) + "+0") << i;
}

TEST_F(Symbols, an_entry_of_the_linkage_table_is_named_by_its_slot) {
  // ff 25 disp32: jmp *disp(%rip)
  const uint64_t slot = 0x3000, entry = 0x1800;
  std::vector<std::byte> plt(16);
  plt[0] = std::byte{0xff};
  plt[1] = std::byte{0x25};
  const auto displacement = static_cast<uint32_t>(slot - entry - 6);
  std::memcpy(plt.data() + 2, &displacement, sizeof displacement);
  plt.resize(32);  // an entry without a jump
  builder_.load(kCode, std::vector<std::byte>(0x1000), PF_R | PF_X);
  builder_.symbols({{"read", 0, SHN_UNDEF, 0, STT_FUNC}}, SHT_DYNSYM);
  Elf64_Rela relocation{};
  relocation.r_offset = slot;
  relocation.r_info = ELF64_R_INFO(1, R_X86_64_JUMP_SLOT);
  const auto bytes = std::as_bytes(std::span(&relocation, 1));
  builder_.section(".rela.plt", SHT_RELA, 0, {bytes.begin(), bytes.end()}, 1);
  builder_.section(".plt", SHT_PROGBITS, entry, plt, 0, SHF_ALLOC | SHF_EXECINSTR);
  settle();
  EXPECT_EQ(at(entry + 6), "read@plt+6");
  EXPECT_EQ(at(entry + 16), "(.plt)+0");
}

TEST_F(Symbols, a_relocation_beyond_its_symbols_names_nothing) {
  std::vector<std::byte> plt(16);
  plt[0] = std::byte{0xff};
  plt[1] = std::byte{0x25};
  builder_.load(kCode, std::vector<std::byte>(0x1000), PF_R | PF_X);
  builder_.symbols({{"read", 0, SHN_UNDEF, 0, STT_FUNC}}, SHT_DYNSYM);
  Elf64_Rela relocation{};
  relocation.r_offset = 0x1806;
  relocation.r_info = ELF64_R_INFO(0xffffff, R_X86_64_JUMP_SLOT);
  const auto bytes = std::as_bytes(std::span(&relocation, 1));
  builder_.section(".rela.plt", SHT_RELA, 0, {bytes.begin(), bytes.end()}, 1);
  builder_.section(".plt", SHT_PROGBITS, 0x1800, plt, 0, SHF_ALLOC | SHF_EXECINSTR);
  settle();
  EXPECT_EQ(at(0x1800), "(.plt)+0");
}

TEST_F(Symbols, debug_data_that_is_no_archive_adds_nothing) {
  builder_.section(".gnu_debugdata", SHT_PROGBITS, 0,
                   ElfBuilder::bytes_of("\xfd"
                                        "7zXZ, but damaged"));
  build({function("code", kCode, 8)});
  EXPECT_EQ(table_.size(), 1U);
}

}  // namespace
}  // namespace phlox::symbols
