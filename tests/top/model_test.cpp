#include "phlox/top/model.h"

#include <gtest/gtest.h>

#include "support/profile_of.h"

namespace phlox::top {
namespace {

using profile::Sample;
using profile::SampleId;
using profile::ThreadId;

Nanoseconds wall_of(const profile::Profile& profile) {
  Nanoseconds wall = 0;
  for (const Sample& sample : profile.samples()) wall += sample.wall;
  return wall;
}

TEST(model, keeps_the_last_seconds_and_sums_of_all) {
  Model model(5 * kSecond);
  test::ProfileMaker maker(model);
  const ThreadId thread = maker.thread("a");
  for (int i = 0; i < 60; ++i) maker.add(thread, i % 2 == 0 ? "main;even" : "main;odd", kSecond);
  const Seen seen = model.seen();
  EXPECT_EQ(seen.lately_span, 5 * kSecond);
  EXPECT_EQ(wall_of(seen.lately), 5 * kSecond);
  EXPECT_EQ(seen.all_span, 60 * kSecond);
  EXPECT_EQ(wall_of(seen.all), 60 * kSecond);
  EXPECT_EQ(seen.all.samples().size(), 2u);
}

TEST(model, a_row_that_reaches_over_the_edge_counts_by_its_part) {
  Model model(kSecond);
  test::ProfileMaker maker(model);
  const ThreadId thread = maker.thread("a");
  Sample sample = maker.sample(thread, "main", kSecond);
  sample.cpu = kSecond / 2;
  maker.put(sample);
  maker.add(thread, "main;f", kSecond / 2);
  const Seen seen = model.seen();
  ASSERT_EQ(seen.lately.samples().size(), 2u);
  EXPECT_EQ(seen.lately.samples()[0].wall, kSecond / 2);
  EXPECT_EQ(seen.lately.samples()[0].cpu, kSecond / 4);
}

TEST(model, a_row_that_grows_is_counted_once) {
  Model model(5 * kSecond);
  test::ProfileMaker maker(model);
  const ThreadId thread = maker.thread("a");
  Sample sample = maker.sample(thread, "main", 10);
  model.emit(SampleId(1), sample);
  sample.wall = 30;
  sample.samples = 3;
  model.emit(SampleId(1), sample);
  const Seen seen = model.seen();
  ASSERT_EQ(seen.all.samples().size(), 1u);
  EXPECT_EQ(seen.all.samples()[0].wall, 30);
  EXPECT_EQ(seen.all.samples()[0].samples, 3u);
  EXPECT_EQ(wall_of(seen.lately), 30);
}

TEST(model, one_thread_can_be_picked) {
  Model model(5 * kSecond);
  test::ProfileMaker maker(model);
  const ThreadId one = maker.thread("a"), other = maker.thread("b");
  maker.add(one, "main", 10);
  maker.add(other, "run", 20);
  const Seen seen = picked(model.seen(), {other, {}});
  EXPECT_EQ(wall_of(seen.lately), 20);
  EXPECT_EQ(wall_of(seen.all), 20);
  ASSERT_EQ(seen.all.frames().size(), 1u);
  EXPECT_EQ(seen.all.frames()[0].function, "run");
}

TEST(model, more_sums_than_it_holds_are_left_out_and_said) {
  Model model(5 * kSecond, 10);
  test::ProfileMaker maker(model);
  const ThreadId thread = maker.thread("a");
  for (int i = 0; i < 30; ++i) maker.add(thread, "main;f" + std::to_string(i), 100);
  const Seen seen = model.seen();
  EXPECT_EQ(seen.all.samples().size(), 10u);
  EXPECT_EQ(seen.left_out, 2000);
}

TEST(model, of_nothing_nothing_is_seen) {
  const Model model(kSecond);
  const Seen seen = model.seen();
  EXPECT_EQ(seen.all_span, 0);
  EXPECT_TRUE(seen.lately.samples().empty());
}

}  // namespace
}  // namespace phlox::top
