#include "phlox/process/moved_code.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "phlox/memory/process_memory.h"

namespace phlox::process {
namespace {

std::vector<Mapping> moved_in(const std::string& between) {
  const auto maps =
      parse_maps("7f0000000000-7f0000001000 r--p 00000000 fe:01 99 /usr/lib/lib.so\n" + between +
                 "7f0000004000-7f0000005000 r--p 00004000 fe:01 99 /usr/lib/lib.so\n"
                 "7f0000005000-7f0000006000 r-xp 00000000 00:00 0 \n");
  const auto modules = modules_of(maps);
  EXPECT_EQ(modules.size(), 1U);
  return moved_code_of(maps, modules[0]);
}

TEST(MovedCode, is_memory_without_a_file_between_the_mappings_of_one) {
  EXPECT_EQ(moved_in("7f0000001000-7f0000004000 r-xp 00000000 00:00 0 \n").size(), 1U);
  EXPECT_EQ(moved_in("7f0000001000-7f0000002000 r-xp 00001000 fe:01 99 /usr/lib/lib.so\n"
                     "7f0000002000-7f0000003000 r-xp 00000000 00:00 0 [anon:huge text]\n"
                     "7f0000003000-7f0000004000 r-xp 00000000 00:10 7 /anon_hugepage (deleted)\n")
                .size(),
            2U);
}

TEST(MovedCode, is_nothing_else) {
  EXPECT_TRUE(moved_in("").empty());
  EXPECT_TRUE(moved_in("7f0000001000-7f0000003000 r-xp 00000000 00:00 0 \n").empty()) << "a gap";
  EXPECT_TRUE(moved_in("7f0000002000-7f0000004000 r-xp 00000000 00:00 0 \n").empty()) << "a gap";
  EXPECT_TRUE(moved_in("7f0000001000-7f0000004000 rw-p 00000000 00:00 0 \n").empty()) << "data";
}

// The library that has this process's getpid, and a copy of it that is mapped once more, as a loader does.
class Copied : public testing::Test {
 protected:
  void SetUp() override {
    const auto maps = read_maps(::getpid());
    ASSERT_TRUE(maps);
    for (const Module& module : modules_of(*maps)) {
      if (std::any_of(module.mappings.begin(), module.mappings.end(), [](const Mapping& m) {
            return m.executable && m.holds(RemoteAddress(reinterpret_cast<uint64_t>(&::getpid)));
          }))
        code_ = module;
    }
    auto loaded = load_module(::getpid(), code_);
    ASSERT_TRUE(loaded);
    elf_.emplace(std::move(loaded->elf));
    for (const Mapping& m : code_.mappings) {
      if (!m.executable) continue;
      size_ = m.end - m.start;
      bias_ = loaded->bias - m.start.value;
      copy_ = static_cast<char*>(
          ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      ASSERT_NE(copy_, MAP_FAILED);
      std::memcpy(copy_, reinterpret_cast<const void*>(m.start.value), size_);
    }
    ASSERT_GT(size_, 0U);
    bias_ += reinterpret_cast<uint64_t>(copy_);
  }
  ~Copied() override { ::munmap(copy_, size_); }
  bool holds(size_t from, size_t to) {
    Mapping mapping;
    mapping.start = RemoteAddress(reinterpret_cast<uint64_t>(copy_) + from);
    mapping.end = RemoteAddress(reinterpret_cast<uint64_t>(copy_) + to);
    return holds_code_of(mapping, *elf_, bias_, memory_);
  }

  memory::ProcessMemory memory_{::getpid()};
  Module code_;
  std::optional<elf::ElfFile> elf_;
  uint64_t bias_ = 0;
  char* copy_ = nullptr;
  size_t size_ = 0;
};

TEST_F(Copied, code_is_known_by_what_the_file_has_there) {
  EXPECT_TRUE(holds(0, size_));
  EXPECT_TRUE(holds(4096, 8192));
  std::memset(copy_ + 4096, 0xcc, 8);  // a breakpoint
  EXPECT_TRUE(holds(0, size_));
}

TEST_F(Copied, other_code_at_its_place_is_not_the_file_s) {
  std::memset(copy_, 0x90, size_);
  EXPECT_FALSE(holds(0, size_));
}

TEST_F(Copied, what_lies_outside_its_code_is_not_the_file_s) {
  EXPECT_FALSE(holds(0, size_ + (size_t{1} << 20)));
  bias_ += 4096;
  EXPECT_FALSE(holds(4096, 8192)) << "the page before";
}

}  // namespace
}  // namespace phlox::process
