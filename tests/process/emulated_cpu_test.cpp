#include "phlox/process/emulated_cpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace phlox::process {
namespace {

int in_this_program = 1;

RemoteAddress address_of(const void* here) {
  return RemoteAddress(reinterpret_cast<uint64_t>(here));
}

TEST(EmulatedCpu, loaders_are_known_by_name_and_counted_once) {
  const auto maps = parse_maps(
      "7f0000000000-7f0000001000 r--p 00000000 fe:00 42   /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2\n"
      "7f0000001000-7f0000002000 r-xp 00001000 fe:00 42   /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2\n"
      "7f0000100000-7f0000101000 r--p 00000000 fe:00 43   /lib/ld-musl-x86_64.so.1\n"
      "7f0000200000-7f0000201000 r--p 00000000 fe:00 44   /usr/lib/libld-linux.so\n");
  EXPECT_EQ(loaders_in(maps), 2u);
}

// This program, which asks for one loader, with the maps that it would have under an emulator.
TEST(EmulatedCpu, a_second_loader_is_of_an_emulated_program) {
  auto maps = read_maps(::getpid()).value();
  if (loaders_in(maps) != 1) GTEST_SKIP() << "this program was not started by a loader of its own";
  int elsewhere = 0;
  EXPECT_FALSE(is_emulated(::getpid(), maps, address_of(&elsewhere)));
  maps.push_back(*std::find_if(maps.begin(), maps.end(), [](const Mapping& mapping) {
    return mapping.path.find("/ld-") != std::string::npos && mapping.offset == 0;
  }));
  EXPECT_TRUE(is_emulated(::getpid(), maps, address_of(&elsewhere)));
  EXPECT_FALSE(is_emulated(::getpid(), maps, address_of(&in_this_program)));
}

}  // namespace
}  // namespace phlox::process
