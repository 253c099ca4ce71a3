#include "phlox/exporters/flame_colours.h"

#include <gtest/gtest.h>

namespace phlox::exporters {
namespace {

using profile::FrameKind;

// The published test vectors of FNV-1a, 32 bits.
TEST(flame_colours, hash_is_fnv_1a) {
  EXPECT_EQ(colour_hash(""), 0x811c9dc5U);
  EXPECT_EQ(colour_hash("a"), 0xe40c292cU);
  EXPECT_EQ(colour_hash("foobar"), 0xbf9cf968U);
}

// What web/test/colours_test.ts expects too.
TEST(flame_colours, colours_are_the_scripts) {
  EXPECT_EQ(colour_class(FrameKind::python, "json", "loads"), "p14a");
  EXPECT_EQ(colour_class(FrameKind::python, "app", "main"), "p6b");
  EXPECT_EQ(colour_class(FrameKind::python, "módulo", "名前"), "p10c");
  EXPECT_EQ(colour_class(FrameKind::native, "json", "loads"), "n14a");
  EXPECT_EQ(colour_class(FrameKind::kernel, "json", "loads"), "k");
  EXPECT_EQ(colour_class(FrameKind::marker, "json", "loads"), "m");
}

TEST(flame_colours, the_interpreter_s_own_c_has_a_colour_of_python) {
  for (const char* module : {"python3", "libpython3", "python"})
    EXPECT_EQ(colour_class(FrameKind::native, module, "f"), colour_class(FrameKind::python, module, "f"));
  EXPECT_EQ(colour_class(FrameKind::native, "python_magic", "f")[0], 'n');
}

}  // namespace
}  // namespace phlox::exporters
