#include "phlox/importers/perf_order.h"

#include <gtest/gtest.h>

#include <vector>

namespace phlox::importers {
namespace {

class Orders : public ::testing::Test {
 protected:
  PerfOrder make(size_t most = PerfOrder::kMostBytes) {
    return PerfOrder(
        [this](std::span<const std::byte> record, Nanoseconds time) {
          times.push_back(time);
          marks.push_back(std::to_integer<int>(record[0]));
        },
        most);
  }
  static void put(PerfOrder& order, Nanoseconds time, int mark = 0, size_t size = 8) {
    const auto piece = std::make_shared<std::vector<std::byte>>(size, static_cast<std::byte>(mark));
    order.put(*piece, piece, time);
  }
  std::vector<Nanoseconds> times;
  std::vector<int> marks;
};

TEST_F(Orders, rings_are_merged_by_time) {
  PerfOrder order = make();
  for (const Nanoseconds time : {10, 30, 50}) put(order, time);
  for (const Nanoseconds time : {20, 40}) put(order, time);
  order.end();
  EXPECT_EQ(times, (std::vector<Nanoseconds>{10, 20, 30, 40, 50}));
  EXPECT_EQ(order.late(), 0u);
}

TEST_F(Orders, a_round_is_held_until_the_next_one_ends) {
  PerfOrder order = make();
  put(order, 10);
  put(order, 30);
  order.end_round();
  EXPECT_TRUE(times.empty());
  put(order, 20);  // another ring was a round behind
  put(order, 40);
  order.end_round();
  EXPECT_EQ(times, (std::vector<Nanoseconds>{10, 20, 30}));
  order.end();
  EXPECT_EQ(times.back(), 40);
  EXPECT_EQ(order.late(), 0u);
}

TEST_F(Orders, equal_times_keep_the_order_of_the_file) {
  PerfOrder order = make();
  for (int i = 0; i < 100; ++i) put(order, 7, i);
  order.end();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(marks[static_cast<size_t>(i)], i);
}

TEST_F(Orders, a_piece_is_kept_as_long_as_a_record_in_it_waits) {
  PerfOrder order = make();
  const auto piece = std::make_shared<std::vector<std::byte>>(16);
  order.put(std::span(*piece).first(8), piece, 10);
  order.put(std::span(*piece).last(8), piece, 20);
  order.end_round();
  put(order, 15);
  order.end_round();
  EXPECT_EQ(times, (std::vector<Nanoseconds>{10, 15, 20}));
  EXPECT_EQ(piece.use_count(), 1);
}

TEST_F(Orders, memory_has_a_cap_and_what_comes_too_late_is_counted) {
  PerfOrder order = make(size_t{4} << 20);
  for (Nanoseconds i = 0; i < 1000; ++i) put(order, 1000 + i, 0, 60'000);
  EXPECT_GT(times.size(), 900u);
  put(order, 1);
  order.end();
  EXPECT_EQ(times.size(), 1001u);
  EXPECT_EQ(order.late(), 1u);
}

}  // namespace
}  // namespace phlox::importers
