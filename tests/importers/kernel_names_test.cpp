#include "phlox/importers/kernel_names.h"

#include <gtest/gtest.h>

namespace phlox::importers {
namespace {

constexpr const char* kText =
    "ffffffff81000000 T _text\n"
    "ffffffff81001000 T schedule\n"
    "ffffffffc0001000 t ext4_read\t[ext4]\n";

TEST(KernelNames, addresses_move_with_the_kernel_and_its_modules_are_then_unknown) {
  KernelNames names;
  names.take(kText, "_text", 0xffffffff91000000);
  EXPECT_EQ(names.find(0xffffffff91001010), "schedule");
  EXPECT_FALSE(names.find(0xffffffff81001010).has_value());
  EXPECT_FALSE(names.find(0xffffffffc0001010).has_value());
}

TEST(KernelNames, where_nothing_moved_modules_are_named_too) {
  KernelNames names;
  names.take(kText, "_text", 0xffffffff81000000);
  EXPECT_EQ(names.find(0xffffffff81001010), "schedule");
  EXPECT_EQ(names.find(0xffffffffc0001010), "ext4_read");
}

TEST(KernelNames, another_kernel_names_nothing) {
  KernelNames names;
  names.open("", "_text", 0xffffffff81000000, "0.0.1-other", {});
  EXPECT_FALSE(names.find(0xffffffff81001010).has_value());
  names.open("00112233445566778899", "_text", 0xffffffff81000000, "", {});
  EXPECT_FALSE(names.find(0xffffffff81001010).has_value());
  names.take("no such symbol\n", "_text", 1);
  EXPECT_FALSE(names.find(0xffffffff81001010).has_value());
}

}  // namespace
}  // namespace phlox::importers
