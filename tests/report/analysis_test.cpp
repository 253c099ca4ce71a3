#include "phlox/report/analysis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "phlox/report/comparison.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using profile::Profile;
using test::ProfileMaker;

constexpr Nanoseconds kMs = 1'000'000;

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

// To either side of the share.
double reach_in(const Analysis& analysis, const Entry& entry) {
  return reach_of(Amount{0, entry.self.variance, analysis.step}) / double(analysis.total);
}

// Shares of 10, 30 and 60 %, each sample for itself.
int truths_inside(int runs) {
  std::mt19937 random(4711);
  std::uniform_real_distribution<> uniform(0, 1);
  int inside = 0;
  for (int run = 0; run < runs; ++run) {
    Profile profile;
    ProfileMaker maker(profile);
    const auto thread = maker.thread("a");
    int now = 2;
    for (int i = 0; i < 3000; ++i) {
      const double x = uniform(random);
      now = x < 0.1 ? 0 : x < 0.4 ? 1 : 2;
      const char* stacks[] = {"main;ten", "main;thirty", "main;sixty"};
      maker.add(thread, stacks[now], 4'000'000 + static_cast<Nanoseconds>(random() % 2'000'000));
    }
    const auto analysis = *analyse(profile, {}, Identity::exact);
    bool all = true;
    for (const auto& [name, truth] :
         {std::pair("ten", 0.1), std::pair("thirty", 0.3), std::pair("sixty", 0.6)}) {
      const Entry* entry = find(profile, analysis, name);
      all = all && entry != nullptr && std::abs(entry->self.share - truth) <= reach_in(analysis, *entry);
    }
    inside += all;
  }
  return inside;
}

TEST(Analysis, intervals_hold_the_truth) {
  // All three at once in 99 % or a little less of the runs.
  EXPECT_GE(truths_inside(200), 194);
}

TEST(Analysis, intervals_say_something) {
  Profile profile;
  ProfileMaker maker(profile);
  const auto thread = maker.thread("a");
  std::mt19937 random(1);
  for (int i = 0; i < 10'000; ++i) maker.add(thread, random() % 10 < 3 ? "f" : "g", 5'000'000);
  const auto analysis = *analyse(profile, {}, Identity::exact);
  const double reach = reach_in(analysis, *find(profile, analysis, "f"));
  EXPECT_GT(reach, 0.008);  // sqrt(.3 .7 / 10000) 2.6 = 0.012
  EXPECT_LT(reach, 0.020);
}

// A phase of the program is known but for its two ends, however long it is.
TEST(Analysis, a_phase_has_the_error_of_its_ends) {
  Profile profile;
  ProfileMaker maker(profile);
  const auto thread = maker.thread("a");
  for (const char* phase : {"load", "fit", "save"}) {
    for (int i = 0; i < 100; ++i) maker.add(thread, phase, 10 * kMs);
  }
  const auto analysis = *analyse(profile, {}, Identity::exact);
  EXPECT_LT(reach_in(analysis, *find(profile, analysis, "fit")), 0.02);  // of 3 s: 60 ms
  EXPECT_GT(reach_in(analysis, *find(profile, analysis, "fit")), 0.003);
}

// 97 waits of a known length have no error, although few samples were taken.
TEST(Analysis, waits_that_the_kernel_timed_have_no_error) {
  for (const bool exact : {true, false}) {
    Profile profile;
    ProfileMaker maker(profile);
    const auto thread = maker.thread("a");
    if (exact) {
      profile::Process process = profile.processes().front();
      process.mode = profile::kInTheKernel;
      profile.emit(profile::ProcessId(1), process);
    }
    for (int i = 0; i < 97; ++i) {
      maker.add(thread, "work", 1 * kMs);
      maker.put(maker.blocked(thread, "stall", 50 * kMs, 35));
    }
    const auto analysis = *analyse(profile, {}, Identity::exact);
    EXPECT_EQ(reach_in(analysis, *find(profile, analysis, "stall")) < 0.001, exact);
  }
}

}  // namespace
}  // namespace phlox::report
