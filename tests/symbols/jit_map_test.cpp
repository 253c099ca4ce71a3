#include "phlox/symbols/jit_map.h"

#include <gtest/gtest.h>

#include <cstring>

namespace phlox::symbols {
namespace {

std::string name_at(const JitMap& map, uint64_t address) {
  const auto found = map.find(RemoteAddress(address));
  return found ? std::string(found->name) : "-";
}

TEST(JitMap, perf_map_lines) {
  JitMap map;
  map.add_perf_map(
      "7f0000001000 20 py::work:/app/main.py\n0x7f0000002000 0x10 two words\nnot a line\n7f00 "
      "5\n7f0000003000 20 half");
  EXPECT_EQ(name_at(map, 0x7f0000000fff), "-");
  EXPECT_EQ(name_at(map, 0x7f0000001000), "py::work:/app/main.py");
  EXPECT_EQ(name_at(map, 0x7f000000101f), "py::work:/app/main.py");
  EXPECT_EQ(name_at(map, 0x7f0000001020), "-");
  EXPECT_EQ(name_at(map, 0x7f000000200f), "two words");
  EXPECT_EQ(name_at(map, 0x7f0000003000), "-");  // its line is still being written
  EXPECT_EQ(map.refused(), 2u);
}

TEST(JitMap, code_written_over_older_code_wins_where_it_lies) {
  JitMap map;
  map.add_perf_map("1000 100 old\n1040 20 new\n2000 10 a\n2010 10 b\n2008 10 c\n");
  EXPECT_EQ(name_at(map, 0x103f), "old");
  EXPECT_EQ(name_at(map, 0x1040), "new");
  EXPECT_EQ(name_at(map, 0x1060), "old");
  EXPECT_EQ(map.find(RemoteAddress(0x1060))->offset, 0x60u);
  EXPECT_EQ(name_at(map, 0x2007), "a");
  EXPECT_EQ(name_at(map, 0x2010), "c");
  EXPECT_EQ(name_at(map, 0x2018), "b");
  EXPECT_EQ(name_at(map, 0x2020), "-");
}

// A jitdump made by hand.
class Dump {
 public:
  Dump() {
    put<uint32_t>(0x4A695444), put<uint32_t>(1), put<uint32_t>(40), put<uint32_t>(62), put<uint32_t>(0),
        put<uint32_t>(1);
    put<uint64_t>(0), put<uint64_t>(0);
  }
  template <class T>
  void put(T value) {
    const auto at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  void text(const std::string& s) {
    for (const char c : s) put(c);
    put('\0');
  }
  void begin(uint32_t kind) {
    start_ = bytes.size();
    put(kind), put<uint32_t>(0), put<uint64_t>(0);
  }
  void end() {
    const auto size = static_cast<uint32_t>(bytes.size() - start_);
    std::memcpy(bytes.data() + start_ + 4, &size, 4);
  }
  void load(uint64_t address, uint64_t size, const std::string& name) {
    begin(0);
    put<uint32_t>(1), put<uint32_t>(1), put(address), put(address), put(size), put<uint64_t>(0);
    text(name);
    bytes.resize(bytes.size() + size);
    end();
  }
  std::vector<std::byte> bytes;

 private:
  size_t start_ = 0;
};

TEST(JitMap, jitdump_with_lines_and_moves) {
  Dump dump;
  dump.begin(2);
  dump.put<uint64_t>(0x5000), dump.put<uint64_t>(2);
  dump.put<uint64_t>(0x5000), dump.put<uint32_t>(7), dump.put<uint32_t>(0), dump.text("/app/a.py");
  dump.put<uint64_t>(0x5008), dump.put<uint32_t>(9), dump.put<uint32_t>(0), dump.text("\xff");
  dump.end();
  dump.load(0x5000, 16, "py::f");
  dump.load(0x6000, 16, "py::g");
  dump.begin(1);
  dump.put<uint32_t>(1), dump.put<uint32_t>(1), dump.put<uint64_t>(0), dump.put<uint64_t>(0x5000),
      dump.put<uint64_t>(0x7000), dump.put<uint64_t>(16), dump.put<uint64_t>(0);
  dump.end();
  JitMap map;
  map.add_jitdump(dump.bytes);
  EXPECT_EQ(name_at(map, 0x5000), "-");
  EXPECT_EQ(name_at(map, 0x6001), "py::g");
  const auto moved = map.find(RemoteAddress(0x7009));
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->name, "py::f");
  EXPECT_EQ(moved->file, "/app/a.py");
  EXPECT_EQ(moved->line, 9);
  EXPECT_EQ(map.find(RemoteAddress(0x7000))->line, 7);
}

TEST(JitMap, jitdump_cut_anywhere_keeps_what_came_before) {
  Dump dump;
  dump.load(0x5000, 16, "py::f");
  dump.load(0x6000, 16, "py::g");
  for (size_t n = 0; n < dump.bytes.size(); ++n) {
    JitMap map;
    map.add_jitdump(std::span(dump.bytes).first(n));
    EXPECT_EQ(name_at(map, 0x6000), "-");
  }
}

}  // namespace
}  // namespace phlox::symbols
