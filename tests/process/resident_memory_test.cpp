#include "phlox/process/resident_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace phlox::process {
namespace {

constexpr uint64_t kPresent = uint64_t{1} << 63, kSwapped = uint64_t{1} << 62;

TEST(ResidentMemory, joins_neighbouring_pages_and_leaves_out_those_that_are_not_in_RAM) {
  const std::array<uint64_t, 6> entries{kPresent, kPresent | 7, 0, kSwapped, kPresent, 0};
  ResidentMemory memory;
  add_pages(memory, RemoteAddress(0x10000), entries, 4096, 1 << 20);
  ASSERT_EQ(memory.runs.size(), 2U);
  EXPECT_EQ(memory.runs[0].start, RemoteAddress(0x10000));
  EXPECT_EQ(memory.runs[0].end, RemoteAddress(0x12000));
  EXPECT_EQ(memory.runs[1].start, RemoteAddress(0x14000));
  EXPECT_EQ(memory.bytes, 3U * 4096);
  EXPECT_TRUE(memory.swapped);
  EXPECT_FALSE(memory.cut);
}

TEST(ResidentMemory, of_more_than_is_asked_for_is_cut_and_says_so) {
  const std::array<uint64_t, 4> entries{kPresent, kPresent, kPresent, kPresent};
  ResidentMemory memory;
  add_pages(memory, RemoteAddress(0x10000), entries, 4096, 8192);
  EXPECT_EQ(memory.bytes, 8192U);
  EXPECT_TRUE(memory.cut);
}

TEST(ResidentMemory, has_a_page_that_was_written_and_not_one_that_was_not) {
  const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* pages = ::mmap(nullptr, 4 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ::madvise(pages, 4 * size, MADV_NOHUGEPAGE);
  const RemoteAddress start(reinterpret_cast<uint64_t>(pages));
  *(static_cast<volatile char*>(pages) + size) = 1;
  const auto memory = read_resident_memory(::getpid(), uint64_t{1} << 40);
  ASSERT_TRUE(memory);
  const auto holds = [&](RemoteAddress at) {
    return std::any_of(memory->runs.begin(), memory->runs.end(),
                       [at](const PageRun& run) { return at >= run.start && at < run.end; });
  };
  EXPECT_TRUE(holds(start + size));
  EXPECT_FALSE(holds(start + 2 * size));
  ::munmap(pages, 4 * size);
}

}  // namespace
}  // namespace phlox::process
