#include "phlox/report/analysis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/profile_of.h"

namespace phlox::report {
namespace {

using profile::Profile;
using test::ProfileMaker;

const Entry* find(const Profile& profile, const Analysis& analysis, const std::string& name) {
  for (const Entry& entry : analysis.functions) {
    if (profile.frame(entry.frame).qualified_name == name) return &entry;
  }
  return nullptr;
}

TEST(Analysis, recursion_counts_once_in_totals) {
  Profile profile;
  ProfileMaker maker(profile);
  const auto thread = maker.thread("a");
  maker.add(thread, "main;f:1;g;f:2;f:3", 10);
  maker.add(thread, "main;f:1;g", 5);
  maker.add(thread, "main", 1);
  const auto analysis = *analyse(profile, {}, Identity::exact);
  EXPECT_EQ(analysis.total, 16);
  EXPECT_EQ(find(profile, analysis, "f")->self.weight, 10);
  EXPECT_EQ(find(profile, analysis, "f")->total.weight, 15);
  EXPECT_EQ(find(profile, analysis, "g")->self.weight, 5);
  EXPECT_EQ(find(profile, analysis, "main")->total.weight, 16);
  EXPECT_DOUBLE_EQ(find(profile, analysis, "main")->total.share, 1);
  EXPECT_EQ(find(profile, analysis, "g")->samples, 2u);
  for (const Entry& entry : analysis.lines) {
    if (profile.frame(entry.frame).qualified_name == "f" && entry.line == 1) {
      EXPECT_EQ(entry.total.weight, 15);
    }
  }
}

TEST(Analysis, rejected_time_is_in_the_whole_and_in_no_function) {
  Profile profile;
  ProfileMaker maker(profile);
  const auto thread = maker.thread("a");
  maker.add(thread, "main", 3);
  auto rejected = maker.sample(thread, "(moved)", 1);
  rejected.quality = profile::Quality::rejected;
  maker.put(rejected);
  const auto analysis = *analyse(profile, {}, Identity::exact);
  ASSERT_EQ(analysis.functions.size(), 1u);
  EXPECT_DOUBLE_EQ(analysis.functions[0].self.share, 0.75);
}

TEST(Analysis, twenty_thousand_frames_deep_is_no_problem) {
  Profile profile;
  ProfileMaker maker(profile);
  std::string deep = "main";
  for (int i = 0; i < 20'000; ++i) deep += ";recurse";
  maker.add(maker.thread("a"), deep, 7);
  const auto analysis = *analyse(profile, {}, Identity::exact);
  EXPECT_EQ(find(profile, analysis, "recurse")->total.weight, 7);
}

TEST(Analysis, portable_identity_joins_what_moved) {
  Profile profile;
  ProfileMaker maker(profile);
  const auto thread = maker.thread("a");
  maker.add(thread, "/old/place/app.py/f:3", 1);
  maker.add(thread, "/new/app.py/f:3", 2);
  maker.add(thread, "/new/other.py/f:3", 4);
  EXPECT_EQ(analyse(profile, {}, Identity::exact)->functions.size(), 3u);
  const auto analysis = *analyse(profile, {}, Identity::portable);
  ASSERT_EQ(analysis.functions.size(), 2u);
  EXPECT_EQ(analysis.functions[0].self.weight + analysis.functions[1].self.weight, 7);
}

TEST(Analysis, quantiles_are_students) {
  EXPECT_NEAR(quantile(0.01, 0), 2.5758, 1e-3);
  EXPECT_NEAR(quantile(0.05, 0), 1.9600, 1e-3);
  EXPECT_NEAR(quantile(0.01, 30), 2.7564, 2e-3);  // 29 degrees of freedom
  EXPECT_NEAR(quantile(0.01, 6), 4.0321, 0.05);
  EXPECT_NEAR(quantile(1e-5, 30), 5.3, 0.2);
}

// Shares of 10, 30 and 60 %, every look for itself, or staying where it is for a while.
int truths_inside(double stay, int runs) {
  std::mt19937 random(4711);
  std::uniform_real_distribution<> uniform(0, 1);
  int inside = 0;
  for (int run = 0; run < runs; ++run) {
    Profile profile;
    ProfileMaker maker(profile);
    const auto thread = maker.thread("a");
    int now = 2;
    for (int i = 0; i < 3000; ++i) {
      if (uniform(random) >= stay) {
        const double x = uniform(random);
        now = x < 0.1 ? 0 : x < 0.4 ? 1 : 2;
      }
      const char* stacks[] = {"main;ten", "main;thirty", "main;sixty"};
      maker.add(thread, stacks[now], 4'000'000 + static_cast<Nanoseconds>(random() % 2'000'000));
    }
    const auto analysis = *analyse(profile, {}, Identity::exact);
    const double reach = quantile(kMissing, analysis.blocks);
    bool all = true;
    for (const auto& [name, truth] :
         {std::pair("ten", 0.1), std::pair("thirty", 0.3), std::pair("sixty", 0.6)}) {
      const Entry* entry = find(profile, analysis, name);
      all = all && entry != nullptr &&
            std::abs(entry->self.share - truth) <= reach * std::sqrt(entry->self.variance);
    }
    inside += all;
  }
  return inside;
}

TEST(Analysis, intervals_hold_the_truth) {
  // All three at once in 99 % or a little less of the runs.
  EXPECT_GE(truths_inside(0, 200), 194);
  // Neighbours alike: the number of looks alone would be wrong by a factor of four, and miss in more than
  // half of the runs.
  EXPECT_GE(truths_inside(0.9, 200), 188);
}

TEST(Analysis, intervals_say_something) {
  Profile profile;
  ProfileMaker maker(profile);
  const auto thread = maker.thread("a");
  std::mt19937 random(1);
  for (int i = 0; i < 10'000; ++i) maker.add(thread, random() % 10 < 3 ? "f" : "g", 5'000'000);
  const auto analysis = *analyse(profile, {}, Identity::exact);
  EXPECT_EQ(analysis.blocks, 30u);
  const double reach =
      quantile(kMissing, analysis.blocks) * std::sqrt(find(profile, analysis, "f")->self.variance);
  EXPECT_GT(reach, 0.008);  // sqrt(.3 .7 / 10000) 2.6 = 0.012
  EXPECT_LT(reach, 0.020);
}

TEST(Analysis, a_stretch_over_many_blocks_is_shared_out) {
  Profile profile;
  ProfileMaker maker(profile);
  const auto thread = maker.thread("a");
  auto sample = maker.sample(thread, "f", 100 * kSecond);
  sample.samples = 20'000;
  maker.put(sample);
  const auto analysis = *analyse(profile, {}, Identity::exact);
  EXPECT_EQ(analysis.total, 100 * kSecond);
  EXPECT_EQ(find(profile, analysis, "f")->self.weight, 100 * kSecond);
  // The same in every block: nothing but the number of looks is left of the error.
  EXPECT_LT(std::sqrt(find(profile, analysis, "f")->self.variance), 0.001);
}

}  // namespace
}  // namespace phlox::report
