#include "phlox/symbols/jit_map.h"
#include "support/source_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>

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

TEST(JitMap, a_name_of_megabytes_is_cut) {
  JitMap map;
  const std::string megabytes(size_t{4} << 20, 'n');
  map.add_perf_map("1000 10 old\n1000 10 " + megabytes + "\n2000 10 next\n");
  EXPECT_EQ(name_at(map, 0x1000), std::string(1 << 16, 'n') + "...");
  EXPECT_EQ(name_at(map, 0x2000), "next");
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

// Three functions that CPython 3.13 -X perf_jit compiled a trampoline for, as it wrote them, each after a
// record of its unwind information.
std::vector<std::byte> recorded() {
  std::ifstream in(test::source_path("tests/symbols/recorded/jit-cpython-3.13.dump"), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

TEST(JitMap, jitdump_of_cpython) {
  JitMap map;
  map.add_jitdump(recorded());
  EXPECT_EQ(map.refused(), 0u);
  EXPECT_EQ(map.size(), 3u);
  EXPECT_EQ(name_at(map, 0x7f935ab0d006), "py::_find_and_load:<frozen importlib._bootstrap>");
  EXPECT_EQ(name_at(map, 0x7f935ab0d00b), "-");
}

// What hostile bytes may cost: never more names than there are records, no more of either than bytes.
void expect_bounded(const std::vector<std::byte>& bytes) {
  JitMap map;
  map.add_jitdump(bytes);
  EXPECT_LE(map.size(), 2 * bytes.size() / 16);
  EXPECT_LE(map.refused(), bytes.size() / 16 + 1);
  for (uint64_t at : {uint64_t{0}, uint64_t{0x7f935ab0d006}, ~uint64_t{0}}) map.find(RemoteAddress(at));
}

TEST(JitMap, recorded_jitdump_with_any_word_replaced) {
  const auto whole = recorded();
  ASSERT_GT(whole.size(), 200u);
  for (const uint32_t word : {0u, 1u, 0x7fffffffu, 0xffffffffu}) {
    for (size_t at = 0; at + 4 <= whole.size(); at += 4) {
      auto bytes = whole;
      std::memcpy(bytes.data() + at, &word, 4);
      expect_bounded(bytes);
    }
  }
}

TEST(JitMap, jitdump_of_another_byte_order_or_none_is_refused) {
  auto bytes = recorded();
  std::reverse(bytes.begin(), bytes.begin() + 4);
  JitMap map;
  map.add_jitdump(bytes);
  map.add_jitdump({});
  map.add_jitdump(std::span(bytes).first(8));
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.refused(), 3u);
}

TEST(JitMap, record_that_is_longer_than_the_file_ends_it) {
  Dump dump;
  dump.load(0x5000, 16, "py::f");
  const size_t second = dump.bytes.size();
  dump.load(0x6000, 16, "py::g");
  const uint32_t size = 0x7fffffff;
  std::memcpy(dump.bytes.data() + second + 4, &size, 4);
  JitMap map;
  map.add_jitdump(dump.bytes);
  EXPECT_EQ(name_at(map, 0x5000), "py::f");
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(map.refused(), 1u);
}

TEST(JitMap, lines_that_are_announced_but_not_there_are_left_out) {
  Dump dump;
  dump.begin(2);
  dump.put<uint64_t>(0x5000), dump.put<uint64_t>(~uint64_t{0});
  dump.put<uint64_t>(0x5000), dump.put<uint32_t>(7), dump.put<uint32_t>(0), dump.text("/app/a.py");
  dump.end();
  dump.load(0x5000, 16, "py::f");
  JitMap map;
  map.add_jitdump(dump.bytes);
  const auto found = map.find(RemoteAddress(0x5004));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->line, 7);
}

TEST(JitMap, code_that_reaches_beyond_all_addresses_is_refused) {
  Dump dump;
  dump.load(~uint64_t{0} - 4, 16, "py::f");
  dump.load(0x5000, 0, "py::g");
  dump.load(0x6000, 16, "");
  JitMap map;
  map.add_jitdump(dump.bytes);
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.refused(), 3u);
}

TEST(JitMap, of_the_addresses_that_are_wanted_it_knows_the_same_and_keeps_no_more) {
  const std::vector<RemoteAddress> wanted = {RemoteAddress(0x1050), RemoteAddress(0x103f),
                                             RemoteAddress(0x2010)};
  constexpr std::string_view kText =
      "1000 100 old\n1040 20 new\n2000 10 a\n2010 10 b\n2008 10 c\n3000 10 d\n";
  JitMap all, some(wanted);
  all.add_perf_map(kText);
  some.add_perf_map(kText);
  for (const RemoteAddress at : wanted) EXPECT_EQ(name_at(some, at.value), name_at(all, at.value));
  EXPECT_EQ(name_at(some, 0x3000), "-");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "40000 10 f\n50000 10 g\n";
  some.add_perf_map(many);
  EXPECT_LT(some.size(), 8U);
}

TEST(JitMap, code_that_is_moved_to_a_wanted_address_has_its_name) {
  Dump dump;
  dump.load(0x5000, 16, "py::f");
  dump.load(0x6000, 16, "py::g");
  for (const uint64_t from : {0x5000, 0x5100}) {
    dump.begin(1);
    dump.put<uint32_t>(1), dump.put<uint32_t>(1), dump.put<uint64_t>(0), dump.put<uint64_t>(from),
        dump.put<uint64_t>(from + 0x100), dump.put<uint64_t>(16), dump.put<uint64_t>(0);
    dump.end();
  }
  JitMap map({RemoteAddress(0x5204)});
  map.add_jitdump(dump.bytes);
  EXPECT_EQ(name_at(map, 0x5204), "py::f");
  EXPECT_EQ(name_at(map, 0x6000), "-");
}

}  // namespace
}  // namespace phlox::symbols
