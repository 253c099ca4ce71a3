#include "phlox/python/version.h"

#include <gtest/gtest.h>

namespace phlox::python {
namespace {

using namespace std::string_view_literals;

TEST(VersionTest, hex_is_spelt_out) {
  EXPECT_EQ(version_of_hex(0x030C01F0).text, "3.12.1");
  EXPECT_FALSE(version_of_hex(0x030C01F0).pre_release);
  EXPECT_EQ(version_of_hex(0x030F00A2).text, "3.15.0a2");
  EXPECT_EQ(version_of_hex(0x030F00B1).text, "3.15.0b1");
  EXPECT_EQ(version_of_hex(0x030F00C3).text, "3.15.0rc3");
  EXPECT_TRUE(version_of_hex(0x030F00C3).pre_release);
}

TEST(VersionTest, texts_are_taken_up_to_what_is_no_version) {
  EXPECT_EQ(parse_version("3.9.18 (main")->text, "3.9.18");
  EXPECT_EQ(parse_version("2.7.18+ (default")->text, "2.7.18+");
  EXPECT_EQ(parse_version("3.15.0a2\0"sv)->text, "3.15.0a2");
  EXPECT_TRUE(parse_version("3.15.0rc1")->pre_release);
  for (const auto text : {"", "3", "3.", "3.9", "4.0.1", "3.9.", "a3.9.1", "3.999.1", "-3.9.1"})
    EXPECT_FALSE(parse_version(text)) << text;
}

TEST(VersionTest, file_names_have_the_minor_version) {
  EXPECT_EQ(version_of_file_name("libpython3.9.so.1.0")->text, "3.9");
  EXPECT_EQ(version_of_file_name("python2.7")->minor, 7);
  EXPECT_EQ(version_of_file_name("python3.13t")->minor, 13);
  EXPECT_EQ(version_of_file_name("libpython3.7dm.so.1.0")->minor, 7);
  EXPECT_FALSE(version_of_file_name("python3")) << "no minor version";
  EXPECT_FALSE(version_of_file_name("libpython3.so"));
  EXPECT_FALSE(version_of_file_name("sleep"));
}

TEST(VersionTest, the_buffer_of_py_getversion_is_found_in_memory) {
  const auto memory =
      "junk\0[GCC 12.2.0]\0"
      "2.0.1 (x) y\0"
      "3.9.18 (main, Aug 24 2023, 08:00:00) \n[GCC 12.2.0]\0tail"sv;
  ASSERT_TRUE(find_version_text(memory).has_value());
  EXPECT_EQ(find_version_text(memory)->text, "3.9.18");
  EXPECT_EQ(find_version_text("3.14.6 (main, May  1 2026) [Clang 20.1.4 ]\0"sv)->minor, 14);
  EXPECT_FALSE(find_version_text("1.2.3 (x) [GCC 12]"sv));
  EXPECT_FALSE(find_version_text("[GCC "sv));
}

TEST(VersionTest, the_constant_is_a_string_of_its_own) {
  const auto constants =
      "\0"
      "3.9.1.2\0"
      "x3.9.5\0"
      "3.9.18\0"sv;
  EXPECT_EQ(find_version_constant(constants, 3, 9)->text, "3.9.18");
  EXPECT_FALSE(find_version_constant(constants, 3, 8));
  EXPECT_FALSE(
      find_version_constant("\0"
                            "3.9.18"sv,
                            3, 9))
      << "no end";
}

}  // namespace
}  // namespace phlox::python
