#include "phlox/profile/sampled_events.h"

#include <gtest/gtest.h>

#include <vector>

#include "phlox/view/shown_event.h"

namespace phlox::view {

using namespace profile;

namespace {

Profile of_three() {
  Profile profile;
  put_sampled_event(profile, 1, {"cpu-clock", Unit::nanoseconds});
  put_sampled_event(profile, 2, {"cache-misses:u", Unit::count});
  put_sampled_event(profile, 3, {"inuse_space", Unit::bytes});
  for (uint32_t i = 1; i <= 9; ++i) {
    Sample sample;
    sample.event = static_cast<uint16_t>((i - 1) % 3);  // 0: a row that says nothing is of the first
    sample.value = i;
    profile.emit(SampleId(i), sample);
  }
  return profile;
}

std::vector<int64_t> values(const Profile& profile) {
  std::vector<int64_t> values;
  for (const Sample& sample : profile.samples()) values.push_back(sample.value);
  return values;
}

TEST(SampledEvents, the_first_one_is_shown_unless_another_is_asked_for) {
  Profile profile = of_three();
  ASSERT_TRUE(show_event(profile, ""));
  EXPECT_EQ(values(profile), (std::vector<int64_t>{1, 2, 4, 5, 7, 8}));
  EXPECT_EQ(shown_event(profile), (SampledEvent{"cpu-clock", Unit::nanoseconds}));
}

TEST(SampledEvents, one_without_samples_is_shown_if_it_is_asked_for_only) {
  Profile profile;
  put_sampled_event(profile, 1, {"space", Unit::bytes});
  put_sampled_event(profile, 2, {"objects", Unit::count});
  put_sampled_event(profile, 3, {"space (less)", Unit::bytes});
  for (uint32_t i = 1; i <= 2; ++i) {
    Sample sample;
    sample.event = static_cast<uint16_t>(4 - i);
    sample.value = i;
    profile.emit(SampleId(i), sample);
  }
  // The decrease of the first one comes next to it.
  ASSERT_TRUE(show_event(profile, ""));
  EXPECT_EQ(values(profile), std::vector<int64_t>{1});
  EXPECT_EQ(shown_event(profile).name, "space (less)");
  ASSERT_TRUE(show_event(profile, "space"));
  EXPECT_TRUE(values(profile).empty());
  ASSERT_TRUE(show_event(profile, ""));
  EXPECT_EQ(shown_event(profile).name, "space (less)");
  Profile other;
  put_sampled_event(other, 1, {"space", Unit::bytes});
  put_sampled_event(other, 2, {"objects", Unit::count});
  Sample sample;
  sample.event = 2;
  other.emit(SampleId(1), sample);
  ASSERT_TRUE(show_event(other, ""));
  EXPECT_EQ(shown_event(other).name, "objects");
}

TEST(SampledEvents, each_can_be_shown_after_another_in_the_order_of_the_recording) {
  Profile profile = of_three();
  ASSERT_TRUE(show_event(profile, "cache-misses:u"));
  EXPECT_EQ(values(profile), (std::vector<int64_t>{3, 6, 9}));
  ASSERT_TRUE(show_event(profile, "inuse_space"));
  EXPECT_EQ(values(profile), (std::vector<int64_t>{}));
  EXPECT_EQ(profile.samples_of_others().size(), 9u);
  ASSERT_TRUE(show_event(profile, "cpu-clock"));
  EXPECT_EQ(values(profile), (std::vector<int64_t>{1, 2, 4, 5, 7, 8}));
  ASSERT_TRUE(show_event(profile, "cache-misses"));
  EXPECT_EQ(values(profile), (std::vector<int64_t>{3, 6, 9}));
}

TEST(SampledEvents, an_unknown_one_is_an_error_that_lists_those_that_are_there) {
  Profile profile = of_three();
  const auto shown = show_event(profile, "cycles");
  ASSERT_FALSE(shown);
  EXPECT_EQ(shown.error().kind, ErrorKind::usage);
  EXPECT_NE(shown.error().hint.find("cpu-clock, cache-misses:u, inuse_space"), std::string::npos);
  EXPECT_EQ(profile.samples().size(), 9u);
}

TEST(SampledEvents, a_recording_of_time_alone_has_none) {
  Profile profile;
  profile.emit(SampleId(1), {});
  ASSERT_TRUE(show_event(profile, ""));
  EXPECT_EQ(profile.samples().size(), 1u);
  EXPECT_EQ(shown_event(profile), SampledEvent{});
  EXPECT_FALSE(show_event(profile, "cycles"));
}

TEST(SampledEvents, stacks_are_replaced_of_all) {
  Profile profile = of_three();
  for (uint32_t i = 1; i <= 9; ++i) {
    Sample sample = profile.samples()[i - 1];
    sample.stack = StackId(1);
    profile.emit(SampleId(i), sample);
  }
  ASSERT_TRUE(show_event(profile, ""));
  profile.replace_stacks({{}, {}}, {StackId(), StackId(2)});
  EXPECT_EQ(profile.samples()[0].stack, StackId(2));
  EXPECT_EQ(profile.samples_of_others()[0].stack, StackId(2));
}

}  // namespace
}  // namespace phlox::view
