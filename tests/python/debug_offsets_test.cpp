#include "phlox/python/debug_offsets.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "phlox/python/layout_table.h"
#include "support/debug_offsets_of.h"
#include "support/layout_rows.h"

namespace phlox::python {
namespace {

class DebugOffsetsTest : public testing::TestWithParam<const Layout*> {
 protected:
  DebugOffsetsTest() : bytes_(test::debug_offsets_of(*GetParam())) {}

  void put(size_t at, uint64_t value) { std::memcpy(bytes_.data() + at, &value, sizeof value); }
  std::vector<std::byte> bytes_;
};

bool equal(const Layout& a, const Layout& b) {
  bool same = true;
#define S(s)                       \
  }                                \
  {                                \
    const auto &x = a.s, &y = b.s; \
    (void)x;                       \
    (void)y;
#define F(f) same = same && x.f == y.f;
  { PHLOX_LAYOUT_FIELDS(S, F) }
#undef S
#undef F
  return same;
}

TEST_P(DebugOffsetsTest, words_that_say_what_the_row_says_change_nothing) {
  Layout layout = *GetParam();
  const auto applied = apply_debug_offsets(bytes_, layout);
  ASSERT_TRUE(applied.has_value()) << applied.error().message;
  EXPECT_TRUE(equal(layout, *GetParam()));
}

TEST_P(DebugOffsetsTest, a_moved_field_is_read_where_it_is) {
  Layout layout = *GetParam();
  put(40, *GetParam()->runtime.interpreters_head + 64);  // runtime_state.interpreters_head, in every version
  ASSERT_TRUE(apply_debug_offsets(bytes_, layout).has_value());
  EXPECT_EQ(*layout.runtime.interpreters_head, *GetParam()->runtime.interpreters_head + 64);
}

TEST_P(DebugOffsetsTest, what_cannot_be_an_offset_is_refused_and_changes_nothing) {
  for (const uint64_t hostile :
       {~uint64_t{0}, uint64_t{1} << 40, uint64_t{*GetParam()->runtime.size} + 8, uint64_t{633}}) {
    Layout layout = *GetParam();
    put(40, hostile);
    const auto applied = apply_debug_offsets(bytes_, layout);
    ASSERT_FALSE(applied.has_value()) << hostile;
    EXPECT_EQ(applied.error().kind, ErrorKind::unsupported_python);
    EXPECT_TRUE(equal(layout, *GetParam()));
  }
}

TEST_P(DebugOffsetsTest, cut_short_or_without_cookie_it_is_refused) {
  Layout layout = *GetParam();
  EXPECT_FALSE(apply_debug_offsets(std::span(bytes_).first(100), layout).has_value());
  EXPECT_FALSE(apply_debug_offsets({}, layout).has_value());
  bytes_[0] = std::byte{'y'};
  EXPECT_FALSE(apply_debug_offsets(bytes_, layout).has_value());
}

TEST_P(DebugOffsetsTest, any_words_give_a_bounded_layout_or_an_error) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    auto bytes = bytes_;
    for (int k = 0; k < 4; ++k) {
      const size_t at = 24 + random() % (bytes.size() / 8 - 3) * 8;
      const uint64_t value = round % 2 == 0 ? random() : random() % 4096;
      std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    Layout layout = *GetParam();
    if (!apply_debug_offsets(bytes, layout)) continue;
#define S(s)                  \
  }                           \
  {                           \
    const auto& x = layout.s; \
    (void)x;
#define F(f)                         \
  if (x.f.present()) {               \
    EXPECT_LT(*x.f, 1u << 25) << #f; \
  }
    { PHLOX_LAYOUT_FIELDS(S, F) }
#undef S
#undef F
  }
}

bool has_debug_offsets(const Layout& row) {
  return row.runtime.debug_offsets.present();
}
INSTANTIATE_TEST_SUITE_P(Rows, DebugOffsetsTest, testing::ValuesIn(test::layout_rows(has_debug_offsets)),
                         test::row_name);

TEST(DebugHeaderTest, has_version_and_threading) {
  std::array<std::byte, DebugHeader::kSize> bytes{};
  std::memcpy(bytes.data(), kDebugCookie, 8);
  uint64_t words[] = {0x030E00A5, 1};
  std::memcpy(bytes.data() + 8, words, sizeof words);
  const auto header = parse_debug_header(bytes);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->version, 0x030E00A5u);
  EXPECT_TRUE(header->free_threaded);
  for (const uint64_t version : {0x020700F0ULL, 0x030C00F0ULL, 0x1030E00A5ULL, 0ULL}) {
    std::memcpy(bytes.data() + 8, &version, 8);
    EXPECT_FALSE(parse_debug_header(bytes)) << version;
  }
}

TEST(LayoutTableTest, every_row_has_a_version_of_its_own_and_what_a_walk_needs) {
  for (const Layout& row : layouts()) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(find_layout(row.major, row.minor,
                          {.debug = row.traits.debug, .free_threaded = row.traits.free_threaded}),
              &row);
    for (const Offset needed : {row.interpreter.next, row.interpreter.threads_head, row.thread.size,
                                row.thread.next, row.thread.interp, row.frame.executable, row.frame.previous,
                                row.frame.instr, row.code.name, row.code.filename, row.code.firstlineno,
                                row.code.linetable, row.object.ob_type, row.type.tp_name}) {
      EXPECT_TRUE(needed.present());
    }
    EXPECT_EQ(row.traits.anchor == FrameAnchor::frame_object, row.thread.frame.present());
    EXPECT_EQ(row.traits.anchor == FrameAnchor::current_frame, row.thread.current_frame.present());
    EXPECT_EQ(row.traits.anchor == FrameAnchor::cframe, row.cframe.current_frame.present());
    EXPECT_EQ(row.traits.has_data_stack, row.thread.datastack_chunk.present());
    EXPECT_EQ(row.traits.gil == GilOwner::runtime, row.runtime.gil.present());
    EXPECT_EQ(row.traits.gil == GilOwner::interpreter, row.interpreter.ceval_gil.present());
    EXPECT_EQ(row.traits.gil != GilOwner::symbols, row.gil_state.size.present());
  }
}

}  // namespace
}  // namespace phlox::python
