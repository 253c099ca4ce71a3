#include "phlox/python/line_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "support/pythons.h"
#include "support/source_path.h"

namespace phlox::python {
namespace {

std::vector<std::byte> table(std::initializer_list<int> bytes) {
  std::vector<std::byte> out;
  for (int b : bytes) out.push_back(static_cast<std::byte>(b));
  return out;
}

LineTable kind_of(const test::Python& python) {
  if (python.major == 2) return LineTable::lnotab_unsigned;
  if (python.minor < 10) return LineTable::lnotab;
  return python.minor == 10 ? LineTable::pep626 : LineTable::pep657;
}

// Every interpreter at hand is asked for the line of every instruction of much awkward code.
class EveryLineTable : public testing::TestWithParam<test::Python> {};

TEST_P(EveryLineTable, gives_the_same_line_for_every_instruction) {
  const std::string script = test::source_path("tests/python/print_lines.py");
  std::istringstream lines(test::run_python(GetParam(), {script, "40"}));
  const LineTable kind = kind_of(GetParam());
  size_t compared = 0, codes = 0;
  for (std::string line; std::getline(lines, line); ++codes) {
    std::istringstream words(line);
    int32_t first_line = 0;
    size_t size = 0;
    std::string hex;
    words >> first_line >> size >> hex;
    std::vector<std::byte> bytes;
    for (size_t i = 0; hex != "-" && i + 1 < hex.size(); i += 2) {
      bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    int offset = 0, expected = 0;
    for (char colon = 0; words >> offset >> colon >> expected; ++compared) {
      // The interpreter says -1 for "no line", and 0 for a module's first instruction: neither is a line.
      ASSERT_EQ(line_of(kind, bytes, first_line, offset), expected > 0 ? expected : 0)
          << "code " << codes << " first line " << first_line << " offset " << offset << " table "
          << hex.substr(0, 200);
    }
  }
  EXPECT_GT(codes, 300U);
  EXPECT_GT(compared, 50'000U);
}

INSTANTIATE_TEST_SUITE_P(LineTable, EveryLineTable, testing::ValuesIn(test::pythons()),
                         [](const auto& test) { return test.param.label; });

TEST(LineTable, interpreters_were_found) {
  EXPECT_FALSE(test::pythons().empty());
}

TEST(LineTable, not_started_is_the_first_line) {
  for (LineTable kind :
       {LineTable::lnotab_unsigned, LineTable::lnotab, LineTable::pep626, LineTable::pep657}) {
    EXPECT_EQ(line_of(kind, {}, 7, -1), 7);
  }
}

TEST(LineTable, lnotab_line_deltas_are_signed_since_3_6_only) {
  const auto pairs = table({2, 200});
  EXPECT_EQ(line_of(LineTable::lnotab_unsigned, pairs, 100, 2), 300);
  EXPECT_EQ(line_of(LineTable::lnotab, pairs, 100, 2), 44);
  EXPECT_EQ(line_of(LineTable::lnotab, pairs, 100, 1), 100);
}

TEST(LineTable, pep626_ranges_without_a_line_say_none) {
  const auto pairs = table({4, 1, 2, 0x80, 2, 3});
  EXPECT_EQ(line_of(LineTable::pep626, pairs, 10, 3), 11);
  EXPECT_EQ(line_of(LineTable::pep626, pairs, 10, 4), 0);
  EXPECT_EQ(line_of(LineTable::pep626, pairs, 10, 6), 14);
  EXPECT_EQ(line_of(LineTable::pep626, pairs, 10, 8), 0) << "beyond the code";
}

TEST(LineTable, pep657_reads_each_kind_of_entry) {
  const auto entries = table({
      0x80 | (3 << 3) | 1, 0x12,                                // short form, 2 units, same line
      0x80 | (11 << 3) | 0, 1, 2,                               // one line on
      0x80 | (12 << 3) | 0, 1, 2,                               // two lines on
      0x80 | (13 << 3) | 0, (1 << 1) | 1,                       // no columns, one line back
      0x80 | (14 << 3) | 0, 0x40 | (100 & 63) * 1, 3, 0, 1, 1,  // long, 36 + 3 * 64 = 228 -> 114 lines on
      0x80 | (15 << 3) | 7,                                     // no location, 8 units
  });
  EXPECT_EQ(line_of(LineTable::pep657, entries, 10, 0), 10);
  EXPECT_EQ(line_of(LineTable::pep657, entries, 10, 3), 10);
  EXPECT_EQ(line_of(LineTable::pep657, entries, 10, 4), 11);
  EXPECT_EQ(line_of(LineTable::pep657, entries, 10, 6), 13);
  EXPECT_EQ(line_of(LineTable::pep657, entries, 10, 8), 12);
  EXPECT_EQ(line_of(LineTable::pep657, entries, 10, 10), 12 + 114);
  EXPECT_EQ(line_of(LineTable::pep657, entries, 10, 12), 0);
  EXPECT_EQ(line_of(LineTable::pep657, entries, 10, 27), 0);
  EXPECT_EQ(line_of(LineTable::pep657, entries, 10, 28), 0) << "beyond the code";
}

TEST(LineTable, a_broken_table_gives_no_line_and_no_crash) {
  EXPECT_EQ(line_of(LineTable::pep657, table({0x12, 0x13}), 1, 0), 0) << "does not start with an entry";
  EXPECT_EQ(
      line_of(LineTable::pep657, table({0xf0, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f}), 1, 90),
      0);
  EXPECT_EQ(line_of(LineTable::pep626, table({4}), 1, 0), 0);
  EXPECT_EQ(line_of(LineTable::lnotab, table({4}), 5, 9), 5);
  EXPECT_EQ(line_of(LineTable::lnotab, table({0, 0x80}), -3, 9), 0);
}

TEST(InstructionOffset, follows_what_the_version_keeps_in_a_frame) {
  Traits traits;
  traits.instruction = InstructionUnit::lasti_bytes;
  EXPECT_EQ(instruction_offset(traits, {}, 14), 14);
  EXPECT_LT(instruction_offset(traits, {}, static_cast<uint64_t>(int64_t{-1})), 0);
  traits.instruction = InstructionUnit::lasti_code_units;
  EXPECT_EQ(instruction_offset(traits, {}, 7), 14);
  EXPECT_LT(instruction_offset(traits, {}, 0xffffffffU), 0);
  traits.instruction = InstructionUnit::prev_instr;
  EXPECT_EQ(instruction_offset(traits, RemoteAddress(0x1000), 0x100e), 14);
  EXPECT_LT(instruction_offset(traits, RemoteAddress(0x1000), 0xffe), 0);
  EXPECT_EQ(instruction_offset(traits, RemoteAddress(0x1000), 0x7fff'ffff'ffff), 0x7fffffff)
      << "a torn pointer";
}

}  // namespace
}  // namespace phlox::python
