#include "phlox/process/maps.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "phlox/memory/process_memory.h"
#include "phlox/memory/recorded_memory.h"
#include "support/elf_builder.h"

namespace phlox::process {
namespace {

constexpr char kMaps[] =
    "55d0aa400000-55d0aa401000 r--p 00000000 fe:00 42                         /usr/bin/python3.11\n"
    "55d0aa401000-55d0aa402000 r-xp 00001000 fe:00 42                         /usr/bin/python3.11\n"
    "55d0aa403000-55d0aa404000 rw-p 00002000 fe:00 42                         /usr/bin/python3.11\n"
    "55d0aa404000-55d0aa408000 rw-p 00000000 00:00 0 \n"
    "55d0ab000000-55d0ab100000 rw-p 00000000 00:00 0                          [heap]\n"
    "7f00aa000000-7f00aa001000 r--p 00000000 fe:00 43                         /opt/a b\\012c/libx.so "
    "(deleted)\n"
    "7f00bb000000-7f00bb001000 r--p 00000000 fe:00 43                         /opt/a b\\012c/libx.so "
    "(deleted)\n"
    "7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0                          [vdso]\n";

TEST(MapsTest, lines_become_mappings) {
  const auto maps = parse_maps(kMaps);
  ASSERT_EQ(maps.size(), 8u);
  EXPECT_EQ(maps[1].start, RemoteAddress(0x55d0aa401000));
  EXPECT_TRUE(maps[1].executable && maps[1].readable && !maps[1].writable);
  EXPECT_EQ(maps[1].offset, 0x1000u);
  EXPECT_EQ(maps[1].inode, 42u);
  EXPECT_EQ(maps[3].path, "");
  EXPECT_EQ(maps[4].path, "[heap]");
  EXPECT_EQ(maps[5].path, "/opt/a b\nc/libx.so");
  EXPECT_TRUE(maps[5].deleted);
  EXPECT_EQ(maps[7].path, "[vdso]");
}

TEST(MapsTest, damaged_lines_are_left_out) {
  EXPECT_TRUE(parse_maps("").empty());
  EXPECT_TRUE(
      parse_maps("zz\n-\n55-\n55d0aa400000-55d0aa401000 r--\n55d0aa400000-55d0aa401000 r--p 0 fe").empty());
  for (size_t cut = 0; cut < sizeof kMaps; ++cut)
    EXPECT_LE(parse_maps(std::string_view(kMaps, cut)).size(), 8u);
}

TEST(MapsTest, a_module_is_the_mappings_of_one_load_of_a_file) {
  const auto modules = modules_of(parse_maps(kMaps));
  ASSERT_EQ(modules.size(), 3u);
  EXPECT_EQ(modules[0].path, "/usr/bin/python3.11");
  EXPECT_EQ(modules[0].mappings.size(), 4u);  // with .bss, without the heap
  // Mapped twice from its start: two loads.
  EXPECT_EQ(modules[1].path, modules[2].path);
}

TEST(MapsTest, memory_that_the_kernel_made_a_file_for_is_memory_without_a_file) {
  const auto maps = parse_maps(
      "7f0000000000-7f0000001000 rwxs 00000000 00:01 1028 /dev/zero (deleted)\n"
      "7f0000001000-7f0000002000 r-xp 00000000 00:0e 7 /anon_hugepage (deleted)\n"
      "7f0000002000-7f0000003000 r--p 00000000 00:05 8 /dev/zero\n");
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[0].inode, 0u);
  EXPECT_EQ(maps[0].path, "");
  EXPECT_EQ(maps[1].inode, 0u);
  EXPECT_FALSE(maps[1].deleted);
  EXPECT_EQ(maps[2].inode, 8u);
  EXPECT_EQ(modules_of(maps).size(), 1u);
}

TEST(MapsTest, code_without_a_file_behind_a_module_is_not_of_the_module) {
  const auto modules =
      modules_of(parse_maps("7f0000000000-7f0000001000 r-xp 00000000 fe:01 99 /usr/lib/lib.so\n"
                            "7f0000001000-7f0000002000 rw-p 00001000 fe:01 99 /usr/lib/lib.so\n"
                            "7f0000002000-7f0000003000 rwxp 00000000 00:00 0 \n"));
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].mappings.size(), 2u);
}

TEST(MapsTest, a_gap_between_segments_does_not_part_a_module) {
  // Segments aligned to 2 MiB share the page at 0x380000 of the file.
  const auto modules =
      modules_of(parse_maps("7f0000200000-7f0000581000 r-xp 00000000 fe:00 7 /lib/libold.so\n"
                            "7f0000581000-7f0000780000 ---p 00381000 fe:00 7 /lib/libold.so\n"
                            "7f0000780000-7f0000786000 r--p 00380000 fe:00 7 /lib/libold.so\n"
                            "7f0000786000-7f00007c0000 rw-p 00386000 fe:00 7 /lib/libold.so\n"));
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].start, RemoteAddress(0x7f0000200000));
  EXPECT_EQ(modules[0].mappings.size(), 4u);
}

TEST(MapsTest, no_process_is_an_error_of_that_kind) {
  const auto maps = read_maps(0x3fffffff);
  ASSERT_FALSE(maps.has_value());
  EXPECT_EQ(maps.error().kind, ErrorKind::no_such_process);
}

int sentinel = 1;

TEST(MapsTest, a_live_module_is_opened_and_its_addresses_agree) {
  const auto maps = read_maps(::getpid());
  ASSERT_TRUE(maps.has_value());
  for (const Module& module : modules_of(*maps)) {
    const RemoteAddress mine(reinterpret_cast<uint64_t>(&sentinel));
    bool holds = false;
    for (const Mapping& m : module.mappings) holds = holds || m.holds(mine);
    if (!holds) continue;
    const auto loaded = load_module(::getpid(), module);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    bool found = false;
    loaded->elf.for_each_symbol([&](const elf::Symbol& s) {
      found =
          found || (s.name.find("sentinel") != std::string_view::npos && loaded->remote(s.address) == mine);
      return !found;
    });
    EXPECT_TRUE(found);
    memory::ProcessMemory memory(::getpid());
    const auto image = load_from_memory(memory, module);
    ASSERT_TRUE(image.has_value()) << image.error().message;
    EXPECT_EQ(image->bias, loaded->bias);
    return;
  }
  FAIL() << "no module holds this program's own variable";
}

TEST(MapsTest, a_file_that_was_replaced_is_not_taken_for_the_mapped_one) {
  const std::string path = testing::TempDir() + "replaced.so";
  std::ofstream(path) << "one";
  Module module;
  module.path = path;
  module.inode = 1;  // of another file
  EXPECT_FALSE(open_module(::getpid(), module).has_value());
  ::unlink(path.c_str());
}

TEST(MapsTest, an_image_is_put_together_from_memory) {
  auto bytes =
      test::ElfBuilder().dynamic_segment(0x1000, {{"_PyRuntime", 0x1100}}).without_sections().build();
  bytes.resize(8192);
  constexpr uint64_t kAt = 0x7f0000000000;
  memory::RecordedMemory memory;
  memory.add(RemoteAddress(kAt), bytes);
  Mapping mapping{
      RemoteAddress(kAt), RemoteAddress(kAt + 8192), true, false, false, 0, 1, 2, "/gone.so", true};
  const auto image = load_from_memory(memory, Module{"/gone.so", 1, 2, true, mapping.start, {mapping}});
  // The builder's only segment lies in the file's second page, so no mapping carries its start.
  EXPECT_FALSE(image.has_value());
  mapping.offset = 4096;
  mapping.start = RemoteAddress(kAt + 4096);
  Mapping head = mapping;
  head.offset = 0;
  head.start = RemoteAddress(kAt);
  head.end = RemoteAddress(kAt + 4096);
  const auto split = load_from_memory(memory, Module{"/gone.so", 1, 2, true, head.start, {head, mapping}});
  ASSERT_TRUE(split.has_value()) << split.error().message;
  EXPECT_EQ(split->bias, kAt);
  const auto symbol = split->elf.find_symbol("_PyRuntime");
  ASSERT_TRUE(symbol.has_value());
  EXPECT_EQ(split->remote(symbol->address), RemoteAddress(kAt + 0x1100));
}

// Anything can be mapped under any name, /dev/zero as well.
TEST(MapsTest, what_does_not_begin_as_elf_is_not_copied_out_of_memory) {
  constexpr uint64_t kAt = 0x7f0000000000, kSize = 1 << 20;
  for (const bool elf : {false, true}) {
    std::vector<std::byte> bytes(kSize);
    if (elf)
      std::memcpy(bytes.data(),
                  "\x7f"
                  "ELF",
                  4);
    memory::RecordedMemory memory;
    memory.add(RemoteAddress(kAt), bytes);
    const Mapping mapping{
        RemoteAddress(kAt), RemoteAddress(kAt + kSize), true, true, true, 0, 1, 2, "/dev/zero", false};
    const auto budget = std::make_shared<elf::ReadBudget>(4 * kSize);
    EXPECT_FALSE(
        load_from_memory(memory, Module{"/dev/zero", 1, 2, false, mapping.start, {mapping}}, budget));
    EXPECT_EQ(budget->take(4 * kSize), !elf) << "what is copied is taken from the budget";
    EXPECT_FALSE(budget->take(1));
    EXPECT_FALSE(
        load_from_memory(memory, Module{"/dev/zero", 1, 2, false, mapping.start, {mapping}}, budget));
  }
}

}  // namespace
}  // namespace phlox::process
