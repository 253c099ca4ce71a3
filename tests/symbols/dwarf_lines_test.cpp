// Of this program's own DWARF.
#include "phlox/symbols/dwarf_lines.h"

#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace phlox::symbols {
namespace {

// The functions, and the lines on which they begin and call.
__attribute__((noinline)) uint64_t asked_for() {
  return reinterpret_cast<uint64_t>(__builtin_return_address(0));
}
constexpr int kDeclared = __LINE__ + 2, kCall = __LINE__ + 3;

__attribute__((noinline)) uint64_t caller() {
  const uint64_t after = asked_for();
  return after - 1;
}

__attribute__((always_inline)) inline uint64_t inlined() {
  return asked_for() - 1;
}
constexpr int kInlinedCall = __LINE__ - 2, kAround = __LINE__ + 3;

__attribute__((noinline)) uint64_t around() {
  const uint64_t address = inlined();
  return address;
}

class OwnLines : public testing::Test {
 protected:
  void SetUp() override {
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* base) {
          *static_cast<uint64_t*>(base) = info->dlpi_addr;
          return 1;  // the first is the program
        },
        &base_);
    lines_ = DwarfLines::open("/proc/self/exe", "");
    if (lines_ == nullptr) GTEST_SKIP() << "this program has no debug information";
  }
  std::vector<SourceLevel> find(uint64_t address) { return lines_->find(ImageAddress(address - base_)); }
  static std::string name(const std::string& path) { return std::filesystem::path(path).filename(); }

  uint64_t base_ = 0;
  std::unique_ptr<DwarfLines> lines_;
};

TEST_F(OwnLines, an_address_has_its_function_and_line) {
  const auto levels = find(caller());
  ASSERT_EQ(levels.size(), 1U);
  EXPECT_NE(levels[0].function.find("caller"), std::string::npos) << levels[0].function;
  EXPECT_EQ(name(levels[0].file), "dwarf_lines_test.cpp");
  EXPECT_EQ(levels[0].line, kCall);
  EXPECT_EQ(name(levels[0].declared_file), "dwarf_lines_test.cpp");
  EXPECT_EQ(levels[0].declared_line, kDeclared);
}

TEST_F(OwnLines, an_inlined_function_is_a_level_of_its_own_in_the_one_around_it) {
  const auto levels = find(around());
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_NE(levels[0].function.find("inlined"), std::string::npos) << levels[0].function;
  EXPECT_EQ(levels[0].line, kInlinedCall);
  EXPECT_NE(levels[1].function.find("around"), std::string::npos) << levels[1].function;
  EXPECT_EQ(levels[1].line, kAround) << "of the inlined call";
}

TEST_F(OwnLines, addresses_outside_of_every_unit_have_none) {
  for (const uint64_t address : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}})
    EXPECT_TRUE(lines_->find(ImageAddress(address)).empty()) << address;
}

TEST(DwarfLines, what_is_no_elf_file_has_none) {
  const auto path = std::filesystem::temp_directory_path() / ("phlox_dwarf_" + std::to_string(::getpid()));
  std::ofstream(path) << "\x7f"
                         "ELF, or so it says";
  EXPECT_EQ(DwarfLines::open(path, ""), nullptr);
  EXPECT_EQ(DwarfLines::open("/nonexistent", ""), nullptr);
  std::filesystem::remove(path);
}

// As after a full disk: the headers promise more than the file has.
TEST(DwarfLines, of_a_file_that_was_cut_there_are_none) {
  std::ifstream whole("/proc/self/exe", std::ios::binary);
  std::string head(size_t{64} << 10, '\0');
  whole.read(head.data(), static_cast<std::streamsize>(head.size()));
  const auto path = std::filesystem::temp_directory_path() / ("phlox_cut_" + std::to_string(::getpid()));
  std::ofstream(path, std::ios::binary) << head;
  EXPECT_EQ(DwarfLines::open(path, ""), nullptr);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace phlox::symbols
