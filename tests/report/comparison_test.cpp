#include "phlox/report/comparison.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "phlox/report/analysis.h"
#include "support/cases.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using test::ProfileMaker;

Amount amount_of(const rapidjson::Value& row) {
  return {row[0].GetDouble(), row[1].GetDouble(), row[2].GetDouble(),
          row.Size() > 3 ? row[3].GetDouble() : 0};
}

std::string name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::same:
      return "same";
    case Outcome::unclear:
      return "unclear";
    case Outcome::less:
      return "less";
    case Outcome::more:
      return "more";
  }
  return "";
}

TEST(Comparison, of_two_recordings_is_that_of_the_common_cases) {
  const auto document = test::common_cases("comparison");
  ASSERT_TRUE(document.IsObject());
  std::string seen;
  for (const auto& row : document["judged"].GetArray()) {
    const Margin margin{row["own"].GetDouble(), row["least"].GetDouble()};
    const Comparison found = judge_recordings(amount_of(row["before"]), amount_of(row["after"]), margin,
                                              static_cast<size_t>(row["compared"].GetInt()));
    const double near = 1e-5 * (std::abs(row["low"].GetDouble()) + std::abs(row["high"].GetDouble()) + 1e-9);
    EXPECT_NEAR(found.difference, row["difference"].GetDouble(), near) << row["name"].GetString();
    EXPECT_NEAR(found.low, row["low"].GetDouble(), near) << row["name"].GetString();
    EXPECT_NEAR(found.high, row["high"].GetDouble(), near) << row["name"].GetString();
    EXPECT_EQ(name_of(found.outcome), row["outcome"].GetString()) << row["name"].GetString();
    seen += name_of(found.outcome) + " ";
  }
  for (const char* word : {"same", "unclear", "less", "more"}) EXPECT_NE(seen.find(word), std::string::npos);
}

const Entry* find(const profile::Profile& profile, const Analysis& analysis, const std::string& name) {
  for (const Entry& entry : analysis.functions) {
    if (profile.frame(entry.frame).qualified_name == name) return &entry;
  }
  return nullptr;
}

TEST(SamplingError, is_that_of_the_common_cases) {
  const auto document = test::common_cases("comparison");
  ASSERT_TRUE(document.IsObject());
  for (const auto& row : document["sampling"].GetArray()) {
    const char* name = row["name"].GetString();
    profile::Profile profile;
    ProfileMaker maker(profile);
    profile::Process process = profile.processes().front();
    process.mode = profile::kInTheKernel;
    profile.emit(profile::ProcessId(1), process);
    const profile::ThreadId threads[] = {maker.thread("a"), maker.thread("b")};
    for (const auto& span : row["stretches"].GetArray()) {
      std::string frames;
      for (const auto& frame : span["stack"].GetArray())
        frames += (frames.empty() ? "" : ";") + std::string(frame.GetString());
      auto sample = maker.sample(threads[span["thread"].GetInt()], frames, span["wall"].GetInt64());
      sample.start = ProfileMaker::kStart + span["start"].GetInt64();
      sample.samples = static_cast<uint32_t>(span["samples"].GetInt());
      sample.cpu_state =
          span["state"].GetInt() == 0 ? profile::CpuState::running : profile::CpuState::blocked;
      maker.put(sample);
    }
    const auto analysis = *analyse(profile, {}, Identity::exact);
    EXPECT_DOUBLE_EQ(analysis.step, row["step"].GetDouble()) << name;
    EXPECT_DOUBLE_EQ(analysis.variance, row["whole"].GetDouble()) << name;
    for (const auto& member : row["self"].GetObject()) {
      const Entry* entry = find(profile, analysis, member.name.GetString());
      ASSERT_NE(entry, nullptr) << name;
      EXPECT_NEAR(entry->self.variance, member.value.GetDouble(), 1)
          << name << " " << member.name.GetString();
    }
    for (const auto& member : row["total"].GetObject()) {
      const Entry* entry = find(profile, analysis, member.name.GetString());
      ASSERT_NE(entry, nullptr) << name;
      EXPECT_NEAR(entry->total.variance, member.value.GetDouble(), 1)
          << name << " " << member.name.GetString();
    }
  }
}

// One item in runs that lie around these means.
Runs runs_at(double before, double after, double spread, size_t each, std::mt19937& random) {
  std::normal_distribution<> noise(0, spread);
  Runs runs;
  for (size_t i = 0; i < each; ++i) {
    runs.before.push_back({before + noise(random), 0, 0.001});
    runs.after.push_back({after + noise(random), 0, 0.001});
  }
  return runs;
}

TEST(Runs, need_five_of_each) {
  EXPECT_EQ(runs_needed(), 5u);
  EXPECT_FALSE(can_decide(4, 4));
  EXPECT_FALSE(can_decide(1, 150));
  EXPECT_TRUE(can_decide(4, 6));
  std::mt19937 random(1);
  const auto found = judge_runs({runs_at(4.7, 0, 0.01, 4, random)}, {0.1, 0.01});
  EXPECT_EQ(found[0].outcome, Outcome::unclear) << "three in a hundred such deals are chance";
  EXPECT_LT(found[0].high, -4.5) << "the numbers are there all the same";
}

TEST(Runs, changed_unchanged_and_inconclusive) {
  std::mt19937 random(2);
  for (const size_t each : {size_t{5}, size_t{12}}) {  // every deal; at random
    std::vector<Runs> items = {runs_at(4.7, 0, 0.1, each, random), runs_at(3, 3.01, 0.02, each, random),
                               runs_at(1, 1.1, 0.6, each, random), runs_at(2, 3, 0.05, each, random)};
    for (int i = 0; i < 30; ++i) items.push_back(runs_at(1, 1, 0.1, each, random));
    const auto found = judge_runs(items, {0.1, 0.01});
    EXPECT_EQ(found[0].outcome, Outcome::less) << each;
    EXPECT_EQ(found[1].outcome, Outcome::same) << each;
    EXPECT_EQ(found[2].outcome, Outcome::unclear) << each;
    EXPECT_EQ(found[3].outcome, Outcome::more) << each;
  }
}

TEST(Runs, chances_of_one_item_are_those_of_all_deals) {
  // The two sides lie apart: of the 252 ways to deal ten runs two are as extreme.
  Runs runs;
  for (const double value : {1.0, 2.0, 3.0, 4.0, 5.0}) {
    runs.before.push_back({value, 0, 0});
    runs.after.push_back({value + 10, 0, 0});
  }
  EXPECT_DOUBLE_EQ(judge_runs({runs}, {0.1, 0})[0].chance, 2.0 / 252);
}

TEST(Runs, of_equal_programs_raise_no_alarm_in_ninety_nine_of_a_hundred_comparisons) {
  std::mt19937 random(3);
  for (const size_t each : {size_t{5}, size_t{6}}) {
    int alarms = 0;
    for (int comparison = 0; comparison < 300; ++comparison) {
      // What slows one run down slows all of its functions down, and now and then by half.
      std::vector<Runs> items(15);
      for (int side = 0; side < 2; ++side) {
        for (size_t run = 0; run < each; ++run) {
          std::lognormal_distribution<> slow(0, random() % 7 == 0 ? 0.4 : 0.05), own(0, 0.05);
          const double common = slow(random);
          for (size_t i = 0; i < items.size(); ++i) {
            auto& runs = side == 0 ? items[i].before : items[i].after;
            runs.push_back({double(i + 1) * common * own(random), 0, 0.005});
          }
        }
      }
      bool alarm = false;
      for (const Comparison& one : judge_runs(items, {0.1, 0.01}))
        alarm = alarm || one.outcome == Outcome::less || one.outcome == Outcome::more;
      alarms += alarm;
    }
    // 3 are expected of 300; 9 or more of such a rate are chance in one of 250 tests.
    EXPECT_LE(alarms, 8) << each << " runs";
  }
}

}  // namespace
}  // namespace phlox::report
