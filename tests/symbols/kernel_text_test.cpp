#include "phlox/symbols/kernel_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "phlox/symbols/kernel_symbols.h"

namespace phlox::symbols {
namespace {

TEST(KernelText, function_is_found_by_any_address_inside) {
  const KernelText text(
      "0000000000000000 A fixed_percpu_data\n"
      "ffffffff81000000 T _stext\n"
      "ffffffff81000100 t vfs_read\n"
      "ffffffff81000180 T __pfx_ksys_read\n"
      "ffffffff81000190 T ksys_read\n"
      "ffffffff81000200 D some_data\n"
      "ffffffffc0000000 t ext4_read\t[ext4]\n");
  EXPECT_EQ(text.find(0xffffffff81000100), "vfs_read");
  EXPECT_EQ(text.find(0xffffffff8100018f), "vfs_read");
  EXPECT_EQ(text.find(0xffffffff81000190), "ksys_read");
  EXPECT_EQ(text.find(0xffffffff81000210), "ksys_read");
  EXPECT_FALSE(text.find(0xffffffff80ffffff));
  EXPECT_FALSE(text.find(0xffffffffc8000000));
}

TEST(KernelText, every_address_has_the_name_that_a_reading_of_the_whole_text_gives) {
  std::mt19937 random(7);
  std::string lines;
  uint64_t address = 0xffffffff81000000;
  for (int i = 0; i < 2000; ++i) {
    const char* const kinds[] = {"T x", "t x", "W x", "D x", "r x", "T __pfx_x", "T __ia32_x"};
    lines += fmt::format("{:016x} {}{}\n", address, kinds[random() % 7], i);
    address += random() % 3 * 16;
  }
  lines += fmt::format("{:016x} t of_a_module\t[ext4]\n", uint64_t{0xffffffffc0000000});
  const KernelText text(lines);
  const KernelSymbols symbols(lines);
  for (uint64_t at = 0xffffffff81000000 - 8; at < address + 32; at += 8)
    ASSERT_EQ(text.find(at), symbols.find(at)) << fmt::format("{:x}", at);
}

TEST(KernelText, what_is_no_such_text_names_nothing) {
  for (const char* lines : {"", "\n", "what\n\nffffffff81000000\nffffffff81000000 T\n", "\n\n\n",
                            "0000000000000000 T _stext\n0000000000000000 T schedule\n"}) {
    EXPECT_FALSE(KernelText(lines).find(0xffffffff81000000)) << lines;
    EXPECT_FALSE(KernelText(lines).find(16)) << lines;
  }
  EXPECT_FALSE(KernelText::open("/nonexistent/kallsyms"));
}

}  // namespace
}  // namespace phlox::symbols
