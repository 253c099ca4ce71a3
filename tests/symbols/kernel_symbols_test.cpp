#include "phlox/symbols/kernel_symbols.h"

#include <gtest/gtest.h>

namespace phlox::symbols {
namespace {

TEST(KernelSymbols, function_is_found_by_any_address_inside) {
  const KernelSymbols symbols(
      "ffffffff81000000 T _stext\n"
      "ffffffff81000100 t vfs_read\n"
      "ffffffff81000180 T __pfx_ksys_read\n"
      "ffffffff81000190 T ksys_read\n"
      "ffffffffc0000000 t ext4_read\t[ext4]\n");
  EXPECT_EQ(symbols.find(0xffffffff81000100), "vfs_read");
  EXPECT_EQ(symbols.find(0xffffffff8100018f), "vfs_read");
  EXPECT_EQ(symbols.find(0xffffffff81000190), "ksys_read");
  EXPECT_EQ(symbols.find(0xffffffffc0000010), "ext4_read");
  EXPECT_FALSE(symbols.find(0xffffffff80ffffff));
  EXPECT_FALSE(symbols.find(0xffffffffc8000000));
}

TEST(KernelSymbols, of_two_names_the_global_one) {
  const KernelSymbols symbols(
      "ffffffff81000000 t __do_sys_read\n"
      "ffffffff81000000 T __x64_sys_read\n"
      "ffffffff81000100 T __ia32_sys_gettid\n"
      "ffffffff81000100 T __x64_sys_gettid\n");
  EXPECT_EQ(symbols.find(0xffffffff81000004), "__x64_sys_read");
  EXPECT_EQ(symbols.find(0xffffffff81000104), "__x64_sys_gettid");
}

TEST(KernelSymbols, data_hidden_addresses_and_lines_cut_short_are_left_out) {
  const KernelSymbols symbols(
      "0000000000000000 T _stext\n"
      "ffffffff81000000 D some_data\n"
      "what\n\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n"
      "ffffffff82000000 T last");
  EXPECT_EQ(symbols.size(), 1u);
  EXPECT_EQ(symbols.find(0xffffffff82000000), "last");
}

TEST(KernelSymbols, this_kernel_s_are_there_or_hidden) {
  const KernelSymbols symbols = KernelSymbols::read();
  EXPECT_TRUE(symbols.size() == 0 || symbols.size() > 1000) << symbols.size();
}

}  // namespace
}  // namespace phlox::symbols
