#include "phlox/importers/input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace phlox::importers {
namespace {

TEST(Input, room_is_made_for_what_can_be_there) {
  const std::vector<std::byte> bytes(100);
  const MemoryInput input(bytes);
  EXPECT_EQ(input.room_for(0, 1000), 100u);
  EXPECT_EQ(input.room_for(90, 1000), 10u);
  EXPECT_EQ(input.room_for(90, 5), 5u);
  EXPECT_EQ(input.room_for(100, 5), 0u);
  EXPECT_EQ(input.room_for(~uint64_t{0}, 5), 0u);
}

// It says that it has 0 bytes: names of the kernel are in one.
TEST(Input, a_file_of_proc_is_read_whole) {
  const auto file = FileInput::open("/proc/self/status");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ((*file)->size(), 0u);
  EXPECT_GT((*file)->room_for(0, 5), 0u);
  EXPECT_NE(read_all(**file, 1 << 20).value_or("").find("VmRSS:"), std::string::npos);
}

TEST(Input, all_of_it_is_read_up_to_what_is_allowed) {
  for (const size_t size : std::vector<size_t>{0, 1, 65535, 65536, 65537, 300'000}) {
    const std::vector<std::byte> bytes(size, std::byte{'x'});
    MemoryInput input(bytes);
    EXPECT_EQ(read_all(input, size).value_or("none"), std::string(size, 'x')) << size;
    EXPECT_TRUE(size == 0 || !read_all(input, size - 1)) << size;
  }
}

std::vector<std::byte> numbered(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

// As a pipe gives it.
Forwards in_pieces(const std::vector<std::byte>& bytes, size_t piece) {
  return Forwards([&bytes, piece, at = size_t{0}](std::span<std::byte> into) mutable {
    const size_t got = std::min({into.size(), piece, bytes.size() - at});
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), got, into.begin());
    at += got;
    return got;
  });
}

std::vector<std::byte> part(Forwards& in, uint64_t offset, size_t size) {
  std::vector<std::byte> found(size);
  found.resize(in.read_at(offset, found));
  return found;
}

TEST(Forwards, what_was_passed_over_can_be_asked_for_later) {
  const auto bytes = numbered(500'000);
  Forwards in = in_pieces(bytes, 4096);
  const auto expected = [&](size_t offset, size_t size) {
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(std::min(offset, bytes.size()));
    return std::vector<std::byte>(
        from, from + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(size), bytes.end() - from));
  };
  for (const auto& [offset, size] : std::vector<std::pair<size_t, size_t>>{{0, 100},
                                                                           {450'000, 10'000},
                                                                           {65'000, 200'000},
                                                                           {455'000, 20'000},
                                                                           {0, 70'000},
                                                                           {265'000, 235'000},
                                                                           {499'999, 100},
                                                                           {500'000, 5},
                                                                           {60'000, 440'000}}) {
    EXPECT_EQ(part(in, offset, size), expected(offset, size)) << offset;
  }
  EXPECT_FALSE(in.lost());
}

TEST(Forwards, what_is_read_in_order_is_not_kept) {
  const auto bytes = numbered(300'000);
  Forwards in = in_pieces(bytes, 10'000);
  EXPECT_EQ(part(in, 0, 100'000).size(), 100'000u);
  EXPECT_EQ(part(in, 100'000, 100'000).size(), 100'000u);
  EXPECT_FALSE(in.lost());
  EXPECT_EQ(part(in, 150'000, 10).size(), 0u);
  EXPECT_TRUE(in.lost());
}

}  // namespace
}  // namespace phlox::importers
