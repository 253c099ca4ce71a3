#include "phlox/importers/kernel_names.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

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

TEST(KernelNames, the_copy_next_to_the_build_id_names_another_kernel) {
  std::string folder = (std::filesystem::temp_directory_path() / "phlox-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string place = folder + "/.build-id/00/112233445566778899";
  std::filesystem::create_directories(place);
  std::ofstream(place + "/kallsyms") << kText;
  KernelNames names;
  names.open("00112233445566778899", "_text", 0xffffffff91000000, "", {"/nowhere", folder});
  EXPECT_EQ(names.find(0xffffffff91001010), "schedule");
  EXPECT_FALSE(names.find(0xffffffffc0001010).has_value());
  std::filesystem::remove_all(folder);
}

TEST(KernelNames, another_kernel_names_nothing) {
  KernelNames other, another, names;
  other.open("", "_text", 0xffffffff81000000, "0.0.1-other", {});
  EXPECT_FALSE(other.find(0xffffffff81001010).has_value());
  another.open("00112233445566778899", "_text", 0xffffffff81000000, "", {});
  EXPECT_FALSE(another.find(0xffffffff81001010).has_value());
  names.take("no such symbol\n", "_text", 1);
  EXPECT_FALSE(names.find(0xffffffff81001010).has_value());
}

}  // namespace
}  // namespace phlox::importers
