#include "phlox/memory/recorded_memory.h"

#include <gtest/gtest.h>

#include <array>

namespace phlox::memory {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

TEST(RecordedMemoryTest, pieces_that_touch_become_one) {
  RecordedMemory memory;
  memory.add(RemoteAddress(0x1000), bytes({1, 2}));
  memory.add(RemoteAddress(0x1002), bytes({3, 4}));
  memory.add(RemoteAddress(0x1001), bytes({9}));
  std::array<std::byte, 4> got{};
  ASSERT_TRUE(memory.read(RemoteAddress(0x1000), got));
  EXPECT_EQ(std::vector<std::byte>(got.begin(), got.end()), bytes({1, 9, 3, 4}));
  EXPECT_EQ(memory.size(), 4u);
}

TEST(RecordedMemoryTest, what_was_not_recorded_cannot_be_read) {
  RecordedMemory memory;
  memory.add(RemoteAddress(0x1000), bytes({1, 2}));
  std::array<std::byte, 2> got{};
  EXPECT_FALSE(memory.read(RemoteAddress(0x1001), got));
  EXPECT_FALSE(memory.read(RemoteAddress(0xfff), got));
  EXPECT_FALSE(memory.read(RemoteAddress(~uint64_t{0}), got));
}

TEST(RecordedMemoryTest, text_and_back) {
  RecordedMemory memory;
  memory.add(RemoteAddress(0x7fff00), bytes({0, 255, 16}));
  memory.add(RemoteAddress(0x10), bytes({1}));
  EXPECT_EQ(memory.text(), "10 01\n7fff00 00ff10\n");
  EXPECT_EQ(RecordedMemory::parse(memory.text())->text(), memory.text());
  for (const char* wrong : {"x 00\n", "10\n", "10 0\n", "10 zz\n", "ffffffffffffffff 0000\n"}) {
    EXPECT_EQ(RecordedMemory::parse(wrong).error().kind, ErrorKind::input) << wrong;
  }
}

TEST(RecordedMemoryTest, a_recorder_keeps_what_it_passes_on) {
  RecordedMemory source;
  source.add(RemoteAddress(0x1000), bytes({5, 6, 7}));
  MemoryRecorder recorder(source);
  std::array<std::byte, 2> got{};
  EXPECT_TRUE(recorder.read(RemoteAddress(0x1001), got));
  EXPECT_FALSE(recorder.read(RemoteAddress(0x2000), got));
  EXPECT_EQ(recorder.recorded().text(), "1001 0607\n");
}

}  // namespace
}  // namespace phlox::memory
